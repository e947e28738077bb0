"""Saying one thing of several GPUs at once: a machine of eight is not told the same eight times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchdeck.machine.facts import Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import NOT_GATHERED
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding


def usable(nvidia: Nvidia) -> tuple[Gpu, ...]:
    """Return the GPUs that NVML can talk to."""
    return () if isinstance(nvidia.gpus, Missing) else tuple(gpu for gpu in nvidia.gpus if gpu.fault is None)


def indexes(gpus: Sequence[Gpu]) -> str:
    """Return the numbers as commands take them: ``0,2,3``."""
    return ",".join(str(gpu.index) for gpu in gpus)


def named(gpus: Sequence[Gpu]) -> str:
    """Return GPUs as a sentence names them: ``GPU 0 (NVIDIA A100)``, ``GPUs 0,1,2 (NVIDIA A100)``."""
    products = " and ".join(dict.fromkeys(gpu.name for gpu in gpus if gpu.name != "unknown"))
    number = f"GPU {gpus[0].index}" if len(gpus) == 1 else f"GPUs {indexes(gpus)}"
    return f"{number} ({products})" if products else number


def gone(value: object) -> bool:
    """Whether a fact was looked for and could not be known."""
    return isinstance(value, Missing) and value != NOT_GATHERED


def unknowns(gpus: Sequence[Gpu], value: Callable[[Gpu], object], rule: str, what: str) -> list[Finding]:
    """Return one finding for all GPUs whose fact could not be known.

    Args:
        gpus: The GPUs.
        value: Returns the fact.
        rule: The rule that rests on it.
        what: What could not be judged, before the name of the GPUs.
    """
    lacking = [gpu for gpu in gpus if gone(value(gpu))]
    if not lacking:
        return []
    first = value(lacking[0])
    assert isinstance(first, Missing)
    return [unknown(rule, f"{what} {named(lacking)}", first)]
