"""Machines whose GPUs are joined by NVSwitches: the fabric must be up before CUDA starts."""

from __future__ import annotations

from torchdeck.machine.facts import Facts, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import Fabric
from torchdeck.machine.judge.driver import host_of, in_container
from torchdeck.machine.judge.each_gpu import gone, named, unknowns, usable
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

_START = (
    "sudo systemctl enable --now nvidia-fabricmanager",
    "journalctl -u nvidia-fabricmanager  (why it does not run; its version must be the driver's)",
)


def judge_fabric(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find a fabric that nobody has started, or that is not sound.

    What a GPU itself says of its fabric (Hopper and later) comes before what the list of processes says: a container
    sees its own only.
    """
    gpus = usable(nvidia)
    if not gpus:
        return []
    told = [gpu for gpu in gpus if isinstance(gpu.fabric, Fabric)]
    if not told:
        return _manager(facts, nvidia) or unknowns(
            gpus, lambda gpu: gpu.fabric, "nvls-fabric-not-ready", "whether the fabric is ready of"
        )
    waiting = [gpu for gpu in told if _state(gpu) == "not-started"]
    if waiting:
        return [_not_running(waiting, tuple(f"GPU {gpu.index}: fabric not-started (NVML)" for gpu in waiting))]
    unsound = [gpu for gpu in told if _trouble(gpu)]
    if unsound:
        return [_not_ready(unsound)]
    return unknowns(gpus, lambda gpu: gpu.fabric, "nvls-fabric-not-ready", "whether the fabric is ready of")


def _state(gpu: Gpu) -> str:
    return gpu.fabric.state if isinstance(gpu.fabric, Fabric) else ""


def _trouble(gpu: Gpu) -> str:
    """Return what is wrong with a GPU's fabric; empty where it is sound."""
    fabric = gpu.fabric
    if not isinstance(fabric, Fabric):
        return ""
    if fabric.state != "completed":
        return fabric.state
    return ", ".join(fabric.faults) or (f"error {fabric.status}" if fabric.status else "")


def _manager(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Judge by the switches on the bus and the processes, as GPUs before Hopper do not tell."""
    host = host_of(nvidia)
    if host is None or isinstance(host.pci, Missing) or host.fabric_manager is True:
        return []
    switches = [device for device in host.pci if device.kind == "nvswitch"]
    if not switches or host.fabric_manager is None:
        return []
    what = "whether the fabric manager runs, which this machine's NVSwitches need"
    if isinstance(host.fabric_manager, Missing):
        return [unknown("fabric-manager-not-running", what, host.fabric_manager)] if gone(host.fabric_manager) else []
    if in_container(facts, if_unknown=True):
        return [unknown("fabric-manager-not-running", what, Missing(reason="a container sees its own processes only"))]
    return [
        _not_running(
            list(usable(nvidia)),
            (f"{len(switches)} NVSwitches on the PCI bus", "no process nv-fabricmanager in /proc"),
        )
    ]


def _not_running(gpus: list[Gpu], evidence: tuple[str, ...]) -> Finding:
    return Finding(
        rule="fabric-manager-not-running",
        severity="error",
        title=f"the fabric manager does not run, and {named(gpus)} cannot start CUDA without it",
        cause="GPUs behind NVSwitches answer with: system not yet initialized, until their fabric has been set up.",
        evidence=evidence,
        needs="a running nvidia-fabricmanager of exactly the driver's version",
        mend=_START,
    )


def _not_ready(gpus: list[Gpu]) -> Finding:
    return Finding(
        rule="nvls-fabric-not-ready",
        severity="warning",
        title=f"the NVSwitch fabric of {named(gpus)} is not sound",
        cause="NCCL's multicast over NVSwitch (NVLS) fails in this state, and other traffic may be slow.",
        evidence=tuple(f"GPU {gpu.index}: {_trouble(gpu)} (NVML)" for gpu in gpus),
        needs="a fabric in the state completed, without faults",
        mend=("sudo systemctl restart nvidia-fabricmanager", "NCCL_NVLS_ENABLE=0  (works around it, slower)"),
    )
