"""All that is judged of driver and GPUs, and whether a build holds code for them.

A machine without any NVIDIA GPU gets no finding from here. A file that an older torchdeck saved lacks the later facts,
and the rules that rest on them are silent; a fact that was looked for and not found makes them say *unknown*.
"""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, gpu_targets, tegra
from torchdeck.machine.facts import Driver, Facts, Gpu, Missing, Nvidia
from torchdeck.machine.judge.driver import judge_driver, judge_no_driver, judge_not_reached
from torchdeck.machine.judge.each_gpu import gone, named, usable
from torchdeck.machine.judge.fabric import judge_fabric
from torchdeck.machine.judge.gpu_health import judge_lost, judge_memory_errors, judge_throttling
from torchdeck.machine.judge.gpu_use import (
    judge_capabilities,
    judge_compute_mode,
    judge_libcuda,
    judge_memory_held,
    judge_mig,
    judge_uvm,
    judge_visible,
)
from torchdeck.machine.judge.kernel_module import judge_next_kernel, judge_other_driver
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding
from torchdeck.machine.stack.fit import code_for, sm

__all__ = ["judge_arch", "judge_driver", "judge_nvidia"]


def judge_nvidia(facts: Facts, policy: Policy | None = None) -> list[Finding]:
    """Judge driver and GPUs: are they there, can they be reached, are they sound, free and open to this process."""
    nvidia = facts.nvidia
    if isinstance(nvidia, Missing):
        return [unknown("host-driver-missing", "whether there is an NVIDIA driver", nvidia)]
    if nvidia.driver is None and nvidia.num_pci == 0:
        return []
    found = [*_reach(facts, nvidia), *judge_capabilities(facts, nvidia)]
    if isinstance(nvidia.host, Missing):
        if gone(nvidia.host):
            found.append(unknown("uvm-device-missing", "what kernel and bus show of the GPUs", nvidia.host))
    elif nvidia.driver is not None:
        found += [*judge_other_driver(facts, nvidia.host), *judge_next_kernel(facts, nvidia.host)]
    return [
        *found,
        *judge_lost(facts, nvidia),
        *judge_memory_errors(nvidia),
        *judge_uvm(facts, nvidia),
        *judge_libcuda(facts, nvidia),
        *judge_fabric(facts, nvidia),
        *judge_mig(facts, nvidia),
        *judge_compute_mode(nvidia),
        *judge_memory_held(nvidia, policy or Policy()),
        *judge_throttling(nvidia),
        *judge_visible(facts, nvidia),
        *_below_minimum(nvidia),
    ]


def _reach(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Say why no GPU can be used at all."""
    if isinstance(nvidia.driver, Missing):
        return [unknown("host-driver-missing", "whether the NVIDIA driver works", nvidia.driver)]
    if nvidia.driver is None:
        return judge_no_driver(facts, nvidia)
    if isinstance(nvidia.gpus, Missing) or not nvidia.gpus:
        return judge_not_reached(facts, nvidia, nvidia.driver)
    if all(gpu.fault == "no-permission" for gpu in nvidia.gpus):
        return _closed(facts, nvidia, nvidia.driver)
    return [
        unknown("arch-newer-than-wheel", f"what GPU {gpu.index} ({gpu.name}) can run", gpu.cc)
        for gpu in usable(nvidia)
        if isinstance(gpu.cc, Missing)
    ]


def _closed(facts: Facts, nvidia: Nvidia, driver: Driver) -> list[Finding]:
    """Every GPU is there, and none may be opened: the same as NVML's refusal to start."""
    refused = Nvidia(
        driver=driver,
        gpus=Missing(reason="NVML: no-permission for every GPU"),
        num_pci=nvidia.num_pci,
        devices=nvidia.devices,
        library=nvidia.library,
        nvml="no-permission",
        host=nvidia.host,
    )
    return judge_not_reached(facts, refused, driver)


def _oldest() -> tuple[int, int]:
    """Return the lowest compute capability that any listed build has code for."""
    return min(code for targets in gpu_targets().values() for code in (*targets.binary, *targets.ptx))


def _is_below_minimum(gpu: Gpu) -> bool:
    return not isinstance(gpu.cc, Missing) and gpu.cc < _oldest() and gpu.cc not in tegra()


def _below_minimum(nvidia: Nvidia) -> list[Finding]:
    """Find GPUs that no listed build has code for, whichever is installed."""
    gpus = usable(nvidia)
    old = [gpu for gpu in gpus if _is_below_minimum(gpu)]
    if not old:
        return []
    return [
        Finding(
            rule="arch-below-minimum",
            severity="error" if len(old) == len(gpus) else "warning",
            title=f"{named(old)} is older than any torch build has code for"
            if len(old) == 1
            else f"{named(old)} are older than any torch build has code for",
            cause="Every kernel launch on it fails; the CPU build of torch works.",
            evidence=tuple(f"GPU {gpu.index}: {sm(gpu.cc)} (NVML)" for gpu in old if not isinstance(gpu.cc, Missing)),
            needs=f"{sm(_oldest())} or newer",
            mend=("torchdeck up --stack 2.6-cpu",),
        )
    ]


def judge_arch(nvidia: Nvidia | Missing, row: BuildRow) -> list[Finding]:
    """Decide whether a build holds code that each GPU can run.

    A GPU that does not answer, or that is too old for every build, is left to ``judge_nvidia``.
    """
    if not row.cuda:
        return []
    gpus = nvidia if isinstance(nvidia, Missing) else nvidia.gpus
    name = f"torch {row.torch}+{row.variant}"
    if isinstance(gpus, Missing):
        return [unknown("arch-newer-than-wheel", f"whether {name} has code for the GPU", gpus)]
    targets = gpu_targets()[row.targets]
    findings = []
    for gpu in gpus:
        if gpu.fault is not None or _is_below_minimum(gpu):
            continue
        if isinstance(gpu.cc, Missing):
            findings.append(unknown("arch-newer-than-wheel", f"whether {name} has code for GPU {gpu.index}", gpu.cc))
        elif code_for(targets, gpu.cc) is None:
            newer = gpu.cc > max(targets.binary)
            findings.append(
                Finding(
                    rule="arch-newer-than-wheel" if newer else "arch-dropped-from-wheel",
                    severity="error",
                    title=f"{name} holds no code for GPU {gpu.index} ({gpu.name}, {sm(gpu.cc)})",
                    cause="Every kernel launch on it fails.",
                    evidence=(f"{sm(min(targets.binary))} to {sm(max(targets.binary))}: {targets.source}",),
                    needs=f"a build with code for {sm(gpu.cc)}",
                    mend=("torchdeck stacks", "torchdeck up --stack latest"),
                )
            )
    return findings
