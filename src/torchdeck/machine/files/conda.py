"""Rules on conda's environment.yml: torch by conda and by pip, channels that ended, and the pins of its pip section."""

from __future__ import annotations

from torchdeck.machine.files.hit import Hit, hit
from torchdeck.machine.files.pins import Pin, parse_conda_spec
from torchdeck.machine.files.requirements import read_requirements
from torchdeck.machine.files.torch_pins import (
    CONDA_TORCH,
    TORCH_FAMILY,
    conda_pip_mix,
    judge_numpy,
    judge_pairs,
    judge_pins,
    named,
    python_unsupported,
    release_of,
)
from torchdeck.machine.files.yaml_nodes import entries, get, items, read_yaml, texts
from torchdeck.machine.stack.parse import version_tuple

# PyTorch's own channel got no release after 2.5 (issues 138506 and 149551 of pytorch/pytorch).
_LAST_ON_CHANNEL = "2.5.1"
_PIP_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch"}


def judge_environment(text: str) -> list[Hit]:
    """Judge an environment.yml.

    Raises:
        UsageError: It is not YAML.
    """
    root = read_yaml(text)
    dependencies = get(root, "dependencies")
    conda = [pin for line, spec in texts(dependencies) if (pin := parse_conda_spec(spec, line)) is not None]
    lines = [
        found
        for node in items(dependencies)
        for name, (_, value) in entries(node).items()
        if name == "pip"
        for found in texts(value)
    ]
    pip, indexes = read_requirements(lines)
    # The same releases pair, whoever packs them; numpy of conda and torch of pip meet in one environment.
    same = [Pin(_PIP_NAMES.get(pin.name, pin.name), pin.specifier, pin.line) for pin in conda]
    hits = [*judge_pins(pip, indexes), *judge_pairs(same), *judge_numpy([*same, *pip])]
    by_conda = next((pin for pin in conda if pin.name in CONDA_TORCH), None)
    by_pip = next((pin for pin in pip if pin.name in TORCH_FAMILY), None)
    if by_conda is not None and by_pip is not None:
        hits.append(conda_pip_mix(by_conda.line, by_conda.name, by_pip.line, by_pip.name))
    channels = {name: line for line, name in texts(get(root, "channels"))}
    return [*hits, *_channel(conda, channels), *_python(conda, pip)]


def _channel(conda: list[Pin], channels: dict[str, int]) -> list[Hit]:
    if "pytorch" not in channels or "conda-forge" in channels:
        return []
    late = [pin for pin in named(conda, "pytorch") if pin.specifier and not pin.accepts(_LAST_ON_CHANNEL)]
    late = [pin for pin in late if pin.accepts("99.0") or version_tuple(_head(pin.version)) > (2, 5)]
    return [
        hit(
            channels["pytorch"],
            "conda-channel-ended",
            "error",
            f"the channel pytorch has no pytorch{pin.specifier}",
            cause=f"It got no release after {_LAST_ON_CHANNEL}; conda finds no package.",
            evidence=f"line {pin.line}: pytorch{pin.specifier}",
            needs="torch from pip, or pytorch from conda-forge",
            mend=("- pip: [torch==2.6.0, torchvision==0.21.0]", "channels: [conda-forge]"),
        )
        for pin in late[:1]
    ]


def _head(version: str) -> str:
    head = ".".join(version.split(".")[:2])
    return head if head.replace(".", "").isdecimal() else "0"


def _python(conda: list[Pin], pip: list[Pin]) -> list[Hit]:
    hits = []
    for python in named(conda, "python"):
        for torch in named(pip, "torch"):
            release = release_of(torch.version)
            if release is None or not python.specifier:
                continue
            first, last = (int(text.split(".")[1]) for text in release.pythons)
            minors = (f"3.{minor}.{patch}" for minor in range(first, last + 1) for patch in (0, 9, 18))
            exact = version_tuple(_head(python.version)) if python.version else ()
            if exact[:1] == (3,) and len(exact) > 1 and first <= exact[1] <= last:
                continue
            if not any(python.accepts(text) for text in minors):
                hits.append(python_unsupported(torch.line, f"Python {python.specifier.lstrip('=')}", torch.version))
    return hits
