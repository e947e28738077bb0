"""GPUs that work, but not for this job: taken, closed, split into nothing, or left out by a variable."""

from __future__ import annotations

from torchdeck.machine.facts import Facts, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import Mig, Processes
from torchdeck.machine.judge.driver import ASK_FOR_GPUS, as_version, host_of, in_container, lacks_capability
from torchdeck.machine.judge.each_gpu import gone, indexes, named, unknowns, usable
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

_EXCLUSIVE = ("exclusive-process", "exclusive-thread")
# Cards on which NVIDIA's forward-compatible libcuda refuses to run.
_CONSUMER = ("GeForce", "TITAN")


def judge_compute_mode(nvidia: Nvidia) -> list[Finding]:
    """Find GPUs that take one process, or none."""
    gpus = usable(nvidia)
    closed = [gpu for gpu in gpus if gpu.compute_mode == "prohibited"]
    single = [gpu for gpu in gpus if gpu.compute_mode in _EXCLUSIVE]
    taken = [gpu for gpu in single if isinstance(gpu.processes, Processes) and gpu.processes.num]
    free = [gpu for gpu in single if gpu not in taken]
    findings = []
    for found, severity, what in (
        (closed, "error", "no process at all"),
        (taken, "error", "one process only, and has one"),
        (free, "info", "one process only"),
    ):
        if found:
            findings.append(
                Finding(
                    rule="gpu-exclusive-mode",
                    severity="error" if severity == "error" else "info",
                    title=f"{named(found)}: the compute mode admits {what}",
                    cause="The second process that opens such a GPU gets: all CUDA-capable devices are busy or "
                    "unavailable.",
                    evidence=tuple(f"GPU {gpu.index}: {gpu.compute_mode} (NVML)" for gpu in found),
                    needs="the compute mode DEFAULT, or one process a GPU",
                    mend=(f"sudo nvidia-smi -i {indexes(found)} -c DEFAULT",),
                )
            )
    return findings + unknowns(gpus, lambda gpu: gpu.compute_mode, "gpu-exclusive-mode", "how many processes may use")


def judge_memory_held(nvidia: Nvidia, policy: Policy) -> list[Finding]:
    """Find GPUs whose memory is taken before the job starts."""
    gpus = usable(nvidia)
    held = [gpu for gpu in gpus if _used_frac(gpu) >= policy.gpu_memory_held_frac]
    findings = unknowns(
        gpus, lambda gpu: gpu.memory_used_bytes, "gpu-memory-held-by-other-process", "how much is taken of"
    )
    if not held:
        return findings
    free = [gpu for gpu in gpus if gpu not in held]
    mend = ["nvidia-smi --query-compute-apps=gpu_bus_id,pid,name,used_memory --format=csv"]
    if free:
        mend.insert(0, f"CUDA_VISIBLE_DEVICES={indexes(free)}  (the GPUs that are free)")
    return [
        Finding(
            rule="gpu-memory-held-by-other-process",
            severity="warning",
            title=f"{named(held)}: {_gib(sum(_used(gpu) for gpu in held))} of memory are taken already",
            cause="Another process computes there, or was left behind: a notebook kernel, a worker of a dead job.",
            evidence=tuple(_holder(gpu) for gpu in held),
            needs="a GPU that is free, or a smaller job",
            mend=(*mend, "kill PID  (if it is yours and forgotten)"),
        ),
        *findings,
    ]


def _used(gpu: Gpu) -> int:
    return gpu.memory_used_bytes if isinstance(gpu.memory_used_bytes, int) else 0


def _used_frac(gpu: Gpu) -> float:
    total = gpu.memory_bytes
    return 0.0 if isinstance(total, Missing) or total <= 0 else _used(gpu) / total


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"


def _holder(gpu: Gpu) -> str:
    text = f"GPU {gpu.index}: {_gib(_used(gpu))}"
    if isinstance(gpu.memory_bytes, int):
        text += f" of {_gib(gpu.memory_bytes)}"
    if isinstance(gpu.processes, Processes):
        text += f", {gpu.processes.num} process(es) can be seen from here"
        if gpu.processes.num and gpu.processes.memory_bytes is not None:
            text += f" with {_gib(gpu.processes.memory_bytes)}"
    return text + " (NVML)"


def judge_mig(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find GPUs that are to be split, and are split into nothing."""
    gpus = usable(nvidia)
    empty = [gpu for gpu in gpus if isinstance(gpu.mig, Mig) and gpu.mig.enabled and gpu.mig.num_instances == 0]
    findings = unknowns(gpus, _mig_gap, "mig-no-instances", "how the splitting (MIG) stands of")
    if not empty:
        return findings
    on_host = (
        f"sudo nvidia-smi mig -i {indexes(empty)} -lgip  (what it can be split into)",
        f"sudo nvidia-smi mig -i {indexes(empty)} -cgi 0 -C  (one instance of the whole GPU)",
        f"sudo nvidia-smi -i {indexes(empty)} -mig 0  (no splitting)",
    )
    inside = ("nvidia-smi -L  (on the host: names the instances)", "docker run --gpus '\"device=0:0\"' …")
    return [
        Finding(
            rule="mig-no-instances",
            severity="error",
            title=f"{named(empty)}: MIG is on, but there is no instance to compute on",
            cause="A GPU in MIG mode computes in its instances only; none was made, or none was given to this process.",
            evidence=tuple(f"GPU {gpu.index}: MIG on, 0 instances (NVML)" for gpu in empty),
            needs="an instance with a compute instance in it, or MIG off",
            mend=inside + on_host if in_container(facts, if_unknown=False) else on_host,
        ),
        *findings,
    ]


def _mig_gap(gpu: Gpu) -> object:
    return gpu.mig.num_instances if isinstance(gpu.mig, Mig) else gpu.mig


def judge_uvm(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find a missing ``/dev/nvidia-uvm``, without which CUDA does not start.

    Outside a container CUDA itself makes it, through ``nvidia-modprobe``.
    """
    host = host_of(nvidia)
    wsl = not isinstance(facts.system, Missing) and facts.system.wsl
    if host is None or wsl or not usable(nvidia) or "/dev/nvidia-uvm" in nvidia.devices:
        return []
    container = in_container(facts, if_unknown=False)
    if not container and host.nvidia_modprobe:
        return []
    return [
        Finding(
            rule="uvm-device-missing",
            severity="error" if container else "warning",
            title="/dev/nvidia-uvm is not there, without which CUDA does not start",
            cause="The container was started before the host had loaded the module nvidia-uvm, or without that file."
            if container
            else "The module nvidia-uvm is not loaded, and nvidia-modprobe, which loads it when needed, is not there.",
            evidence=(f"/dev has {', '.join(nvidia.devices) or 'no nvidia*'}",),
            needs="the device file /dev/nvidia-uvm",
            mend=(
                "sudo nvidia-modprobe -u -c=0  (on the host)" if container else "sudo modprobe nvidia-uvm",
                *(("start the container again",) if container else ("install nvidia-modprobe",)),
            ),
        )
    ]


def judge_capabilities(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find a container that asks for the GPU without the libraries that compute."""
    if not in_container(facts, if_unknown=False):
        return []
    lacking = [name for name in ("compute", "utility") if lacks_capability(facts, name)]
    if not lacking or (lacking == ["utility"] and nvidia.library):
        return []
    wish = facts.variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    return [
        Finding(
            rule="nvidia-env-incomplete",
            severity="error" if "compute" in lacking else "warning",
            title=f"NVIDIA_DRIVER_CAPABILITIES={wish} leaves out {' and '.join(lacking)}",
            cause="The container gets only those of the driver's libraries that it asks for: libcuda comes with "
            "compute, NVML and nvidia-smi with utility.",
            evidence=(f"NVIDIA_DRIVER_CAPABILITIES={wish} in the environment",),
            needs="compute,utility or all",
            mend=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",),
        )
    ]


def judge_visible(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find a CUDA_VISIBLE_DEVICES that names a GPU that does not exist; names by UUID are not looked at."""
    value = facts.variables.get("CUDA_VISIBLE_DEVICES")
    if value is None or isinstance(nvidia.gpus, Missing) or not nvidia.gpus:
        return []
    parts = [part.strip() for part in value.split(",")]
    evidence = (f"CUDA_VISIBLE_DEVICES={value} in the environment", f"NVML shows {len(nvidia.gpus)} GPU(s)")
    if value.strip() in ("", "-1", "NoDevFiles"):
        return [
            Finding(
                rule="visible-devices-wrong-index",
                severity="info",
                title="CUDA_VISIBLE_DEVICES hides every GPU",
                cause="Set to nothing or to -1 it makes programs compute on the CPU.",
                evidence=evidence,
                needs="the variable unset, to use the GPUs",
                mend=("unset CUDA_VISIBLE_DEVICES",),
            )
        ]
    last = len(nvidia.gpus) - 1
    for place, part in enumerate(parts):
        number = part.removeprefix("-")
        if number.isdecimal() and number.isascii() and (part != number or int(number[:9]) > last):
            return [
                Finding(
                    rule="visible-devices-wrong-index",
                    severity="warning" if place else "error",
                    title=f"CUDA_VISIBLE_DEVICES names GPU {part[:20]}, and the last one is {last}",
                    cause="CUDA takes no notice of this number and of all that stand after it"
                    + ("." if place else ": no GPU is left."),
                    evidence=evidence,
                    needs=f"numbers from 0 to {last}",
                    mend=(f"export CUDA_VISIBLE_DEVICES={','.join(str(number) for number in range(last + 1))}",),
                )
            ]
    return []


def judge_libcuda(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Hold the libcuda that programs would load against the loaded driver."""
    host, driver = host_of(nvidia), nvidia.driver
    if host is None or driver is None or isinstance(driver, Missing) or not usable(nvidia):
        return []
    library = host.libcuda
    if library is None:
        return _no_libcuda(facts)
    if isinstance(library, Missing):
        return [unknown("driver-versions-mixed", "which libcuda programs would load", library)] if gone(library) else []
    if isinstance(library.version, Missing) or library.version == driver.version:
        return []
    evidence = (f"libcuda.so.1 is {library.path}", f"driver {driver.version}, read from {driver.source}")
    if "/compat/" in library.path and (as_version(library.version) or ()) > (as_version(driver.version) or ()):
        consumer = [gpu for gpu in usable(nvidia) if any(word in gpu.name for word in _CONSUMER)]
        return [_compat(consumer, evidence)] if consumer else []
    container = in_container(facts, if_unknown=False)
    return [
        Finding(
            rule="driver-libs-inside-container" if container else "driver-versions-mixed",
            severity="error",
            title=f"programs would load libcuda {library.version} under the driver {driver.version}",
            cause="The image holds a driver's library of its own, which is found before the host's."
            if container
            else "libcuda and the loaded module must be of the same version.",
            evidence=evidence,
            needs=f"libcuda {driver.version}",
            mend=("remove the packages libnvidia-* and libcuda1 from the image",)
            if container
            else ("sudo reboot  (after a driver update)", f"rm {library.path}  (if it was left behind by another one)"),
        )
    ]


def _no_libcuda(facts: Facts) -> list[Finding]:
    """A container without libcuda; on a machine itself the rule about compilers, which Triton needs it for, says it."""
    if not in_container(facts, if_unknown=False) or lacks_capability(facts, "compute"):
        return []  # the latter is said by judge_capabilities
    return [
        Finding(
            rule="nvidia-env-incomplete",
            severity="error",
            title="the loader finds no libcuda.so.1, without which torch sees no GPU",
            cause="The driver's part for computing was not brought into this container.",
            evidence=("looked in LD_LIBRARY_PATH, ldconfig's cache and the system's folders",),
            needs="libcuda.so.1 of the driver",
            mend=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …", *ASK_FOR_GPUS),
        )
    ]


def _compat(gpus: list[Gpu], evidence: tuple[str, ...]) -> Finding:
    return Finding(
        rule="cuda-compat-unsupported-gpu",
        severity="error",
        title=f"programs would load a forward-compatible libcuda, which refuses {named(gpus)}",
        cause="Only data-centre GPUs may run a libcuda that is newer than the driver.",
        evidence=evidence,
        needs="the libcuda of the driver itself",
        mend=("take the compat folder out of LD_LIBRARY_PATH", "update the driver"),
    )
