"""Driver and GPUs: are they there, can they be reached from here, and does a build fit them."""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, cuda_of, gpu_targets
from torchdeck.machine.facts import Driver, Facts, Missing, Nvidia
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding
from torchdeck.machine.stack.fit import code_for, sm
from torchdeck.machine.stack.parse import version_tuple

_INSTALL_DRIVER = {
    "ubuntu": "sudo ubuntu-drivers install",
    "debian": "sudo apt-get install nvidia-driver  (section non-free)",
    "fedora": "sudo dnf install akmod-nvidia  (from RPM Fusion)",
}


def judge_nvidia(facts: Facts) -> list[Finding]:
    """Find a GPU that cannot be used: no driver, or none of it inside this container."""
    nvidia = facts.nvidia
    if isinstance(nvidia, Missing):
        return [unknown("host-driver-missing", "whether there is an NVIDIA driver", nvidia)]
    if isinstance(nvidia.driver, Missing):
        return [unknown("host-driver-missing", "whether the NVIDIA driver works", nvidia.driver)]
    if nvidia.driver is None:
        return _no_driver(facts, nvidia)
    if isinstance(nvidia.gpus, Missing) or not nvidia.gpus:
        return [_not_reached(facts, nvidia, nvidia.driver)]
    return [
        unknown("arch-newer-than-wheel", f"what GPU {gpu.index} ({gpu.name}) can run", gpu.cc)
        for gpu in nvidia.gpus
        if isinstance(gpu.cc, Missing)
    ]


def _no_driver(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    if isinstance(nvidia.num_pci, Missing):
        return [unknown("host-driver-missing", "whether an NVIDIA GPU is on the bus", nvidia.num_pci)]
    if nvidia.num_pci == 0:
        return []
    container = not isinstance(facts.system, Missing) and bool(facts.system.container)
    if container and not isinstance(facts.system, Missing):
        where, rule = "in this container", "gpu-not-passed-to-container"
        mend: tuple[str, ...] = ("docker run --gpus all …", "podman run --device nvidia.com/gpu=all …")
    else:
        where, rule = "on this machine", "host-driver-missing"
        distribution = "" if isinstance(facts.system, Missing) else str(facts.system.distribution)
        mend = (_INSTALL_DRIVER.get(distribution, "install NVIDIA's driver from your distribution"),)
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=f"{nvidia.num_pci} NVIDIA GPU(s) on the bus, but no driver {where}",
            cause="Without the driver torch sees no GPU, and everything computes on the CPU.",
            evidence=("PCI class 03, vendor 10de, under /sys/bus/pci/devices", "no /proc/driver/nvidia/version"),
            needs="a loaded NVIDIA driver",
            mend=mend,
        )
    ]


def _not_reached(facts: Facts, nvidia: Nvidia, driver: Driver) -> Finding:
    reason = nvidia.gpus.reason if isinstance(nvidia.gpus, Missing) else "the driver shows no GPU"
    container = isinstance(facts.system, Missing) or bool(facts.system.container)
    in_container = container and not nvidia.devices
    return Finding(
        rule="gpu-not-passed-to-container" if in_container else "driver-versions-mixed",
        severity="warning",
        title=f"the kernel has the NVIDIA driver {driver.version}, but no GPU can be reached from here",
        cause="This container was started without a GPU request."
        if in_container
        else "The driver's library is absent, or is of another version than the loaded kernel module.",
        evidence=(f"{driver.version} read from {driver.source}", reason, f"{len(nvidia.devices)} files /dev/nvidia*"),
        needs="the driver's libraries and device files of the same version",
        mend=("docker run --gpus all …", "podman run --device nvidia.com/gpu=all …")
        if in_container
        else ("sudo reboot  (after a driver update)", "nvidia-smi"),
    )


def judge_driver(nvidia: Nvidia | Missing, row: BuildRow) -> list[Finding]:
    """Decide whether the driver runs a build's CUDA."""
    if not row.cuda:
        return []
    name = f"torch {row.torch}+{row.variant}"
    driver = nvidia if isinstance(nvidia, Missing) else nvidia.driver
    if isinstance(driver, Missing):
        return [unknown("driver-too-old", f"whether the driver is new enough for {name}", driver)]
    if driver is None:
        return []
    cuda = cuda_of(row.cuda)
    evidence = (f"driver {driver.version}, read from {driver.source}",)
    if version_tuple(driver.version) < version_tuple(cuda.floor):
        return [
            Finding(
                rule="driver-too-old",
                severity="error",
                title=f"the driver {driver.version} is too old for {name}",
                cause=f"CUDA {row.cuda} runs under drivers from {cuda.floor} on.",
                evidence=evidence,
                needs=f"at least {cuda.floor}; {cuda.bundled} for every feature",
                mend=(f"install the NVIDIA driver {cuda.bundled} or newer, then reboot", "torchdeck stacks"),
            )
        ]
    if version_tuple(driver.version) < version_tuple(cuda.bundled):
        return [
            Finding(
                rule="ptx-newer-than-driver",
                severity="info",
                title=f"the driver {driver.version} runs {name}, but is older than the one of CUDA {row.cuda}",
                cause="New driver functions are missing, and the driver cannot compile this CUDA's own PTX.",
                evidence=evidence,
                needs=f"{cuda.bundled} or newer for every feature",
                mend=(f"install the NVIDIA driver {cuda.bundled} or newer, when it suits you",),
            )
        ]
    return []


def judge_arch(nvidia: Nvidia | Missing, row: BuildRow) -> list[Finding]:
    """Decide whether a build holds code that each GPU can run."""
    if not row.cuda:
        return []
    gpus = nvidia if isinstance(nvidia, Missing) else nvidia.gpus
    name = f"torch {row.torch}+{row.variant}"
    if isinstance(gpus, Missing):
        return [unknown("arch-newer-than-wheel", f"whether {name} has code for the GPU", gpus)]
    targets = gpu_targets()[row.targets]
    findings = []
    for gpu in gpus:
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
