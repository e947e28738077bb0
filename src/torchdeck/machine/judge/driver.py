"""The driver: is there one, can it be reached from here, do its parts belong together, does it run a build's CUDA."""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, cuda_of
from torchdeck.machine.facts import Driver, Facts, Missing, Nvidia
from torchdeck.machine.facts.nvidia import NvidiaHost
from torchdeck.machine.judge.driver_mends import install_driver
from torchdeck.machine.judge.kernel_module import judge_idle_driver, judge_other_driver
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding
from torchdeck.machine.stack.parse import version_tuple

ASK_FOR_GPUS = ("docker run --gpus all …", "podman run --device nvidia.com/gpu=all …")


def in_container(facts: Facts, *, if_unknown: bool) -> bool:
    """Whether this is a container."""
    system = facts.system
    if isinstance(system, Missing) or isinstance(system.container, Missing):
        return if_unknown
    return bool(system.container)


def in_job(facts: Facts) -> bool:
    """Whether this runs in a Slurm job, which sees only the GPUs that it was given."""
    return "SLURM_JOB_ID" in facts.variables


def host_of(nvidia: Nvidia) -> NvidiaHost | None:
    """Return what the machine shows beside NVML; None where that was not gathered."""
    return None if isinstance(nvidia.host, Missing) else nvidia.host


def lacks_capability(facts: Facts, needed: str) -> bool:
    """Whether the variable that says which of the driver's libraries a container gets leaves one out."""
    wish = facts.variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    return bool(wish.strip()) and not {needed, "all"} & {part.strip() for part in wish.lower().split(",")}


def judge_no_driver(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Say why a GPU on the bus has no driver."""
    if isinstance(nvidia.num_pci, Missing):
        return [unknown("host-driver-missing", "whether an NVIDIA GPU is on the bus", nvidia.num_pci)]
    if nvidia.num_pci == 0:
        return []
    host = host_of(nvidia)
    if in_container(facts, if_unknown=True):
        return [_no_driver_in_container(nvidia, host)]
    found = [] if host is None else judge_idle_driver(facts, host)
    return found or [_not_installed(facts, nvidia, host)]


def _holders(host: NvidiaHost | None) -> tuple[str, ...]:
    """Return which kernel drivers hold NVIDIA's GPUs, in a container as well: the bus is the host's."""
    if host is None or isinstance(host.pci, Missing):
        return ()
    return tuple(
        f"{device.address} is held by {device.driver or 'no driver'}"
        for device in host.pci
        if device.vendor == "10de" and device.kind != "nvswitch"
    )


def _no_driver_in_container(nvidia: Nvidia, host: NvidiaHost | None) -> Finding:
    holders = _holders(host)
    on_host = not holders or any(text.endswith(" nvidia") for text in holders)
    return Finding(
        rule="gpu-not-passed-to-container" if on_host else "host-driver-missing",
        severity="warning",
        title=f"{nvidia.num_pci} NVIDIA GPU(s) on the bus, but no driver in this container"
        if on_host
        else f"{nvidia.num_pci} NVIDIA GPU(s) on the bus, but the host of this container has no driver for them",
        cause="Without the driver torch sees no GPU, and everything computes on the CPU.",
        evidence=("PCI class 03, vendor 10de, under /sys/bus/pci/devices", *holders, "no /proc/driver/nvidia/version"),
        needs="a container that was started with the GPU" if on_host else "NVIDIA's driver on the host",
        mend=ASK_FOR_GPUS
        if on_host
        else ("install NVIDIA's driver on the host, then start the container with --gpus all",),
    )


def _not_installed(facts: Facts, nvidia: Nvidia, host: NvidiaHost | None) -> Finding:
    return Finding(
        rule="host-driver-missing",
        severity="warning",
        title=f"{nvidia.num_pci} NVIDIA GPU(s) on the bus, but no driver on this machine",
        cause="Without the driver torch sees no GPU, and everything computes on the CPU.",
        evidence=(
            "PCI class 03, vendor 10de, under /sys/bus/pci/devices",
            *_holders(host),
            "no /proc/driver/nvidia/version",
        ),
        needs="a loaded NVIDIA driver",
        mend=(install_driver(facts), "sudo reboot"),
    )


def judge_not_reached(facts: Facts, nvidia: Nvidia, driver: Driver) -> list[Finding]:
    """Say why a loaded driver shows no GPU here."""
    container = in_container(facts, if_unknown=True)
    if container and not nvidia.devices:
        return [_not_passed(nvidia, driver, "This container was started without a GPU request.")]
    host = host_of(nvidia)
    library = None if host is None or isinstance(host.nvml, Missing) else host.nvml
    if nvidia.nvml == "lib-rm-version-mismatch" or (
        library is not None and not isinstance(library.version, Missing) and library.version != driver.version
    ):
        return [_mixed(nvidia, driver, container=container)]
    if nvidia.nvml == "no-library":
        return _no_library(facts, nvidia, driver)
    if nvidia.nvml == "success":
        return _none_shown(facts, nvidia, driver, host)
    if nvidia.nvml == "unknown" and in_container(facts, if_unknown=False):
        return [_lost_after_reload(nvidia, driver)]
    if nvidia.nvml == "no-permission":
        return [_no_permission(driver, host)]
    if nvidia.nvml == "":
        return [_mixed(nvidia, driver, container=container, certain=False)]
    reason = nvidia.gpus if isinstance(nvidia.gpus, Missing) else Missing(reason=f"NVML: {nvidia.nvml}")
    return [unknown("gpu-off-bus", "whether the GPUs work, as NVML does not tell", reason)]


def _evidence(nvidia: Nvidia, driver: Driver) -> tuple[str, ...]:
    reason = nvidia.gpus.reason if isinstance(nvidia.gpus, Missing) else "the driver shows no GPU"
    return f"{driver.version} read from {driver.source}", reason, f"{len(nvidia.devices)} files /dev/nvidia*"


def _not_passed(nvidia: Nvidia, driver: Driver, cause: str) -> Finding:
    return Finding(
        rule="gpu-not-passed-to-container",
        severity="warning",
        title=f"the kernel has the NVIDIA driver {driver.version}, but no GPU can be reached from here",
        cause=cause,
        evidence=_evidence(nvidia, driver),
        needs="the driver's libraries and device files of the same version",
        mend=ASK_FOR_GPUS,
    )


def _mixed(nvidia: Nvidia, driver: Driver, *, container: bool, certain: bool = True) -> Finding:
    host = host_of(nvidia)
    library = None if host is None or isinstance(host.nvml, Missing) else host.nvml
    versions = () if library is None else (f"the library is {library.path}",)
    cause = "The driver was updated, and the module that is loaded is still the one from before."
    if not certain:
        cause = "The driver's library is absent, or is of another version than the loaded kernel module."
    elif container:
        cause += " In a container the image may also hold a driver of its own."
    return Finding(
        rule="driver-versions-mixed",
        severity="error" if certain else "warning",
        title=f"the kernel has the NVIDIA driver {driver.version}, and its libraries are of another version"
        if certain
        else f"the kernel has the NVIDIA driver {driver.version}, but no GPU can be reached from here",
        cause=cause,
        evidence=(*_evidence(nvidia, driver), *versions),
        needs="the driver's libraries and device files of the same version",
        mend=("sudo reboot  (after a driver update)", "nvidia-smi"),
    )


def _no_library(facts: Facts, nvidia: Nvidia, driver: Driver) -> list[Finding]:
    if in_container(facts, if_unknown=False):
        if lacks_capability(facts, "utility"):
            return []  # judge_capabilities says it
        cause = "The device files are here, but the driver's libraries were not brought in: --device alone does not."
        return [_not_passed(nvidia, driver, cause)]
    return [
        Finding(
            rule="host-driver-missing",
            severity="error",
            title=f"the module of the NVIDIA driver {driver.version} is loaded, but its libraries are not installed",
            cause="CUDA programs need libcuda.so.1, and nothing here can ask the GPU.",
            evidence=_evidence(nvidia, driver),
            needs=f"the libraries of the driver {driver.version}",
            mend=(install_driver(facts),),
        )
    ]


def _none_shown(facts: Facts, nvidia: Nvidia, driver: Driver, host: NvidiaHost | None) -> list[Finding]:
    """The driver answers, and has no GPU."""
    if in_container(facts, if_unknown=True):
        return [_not_passed(nvidia, driver, "The container has the driver's libraries, but none of its GPUs.")]
    if host is not None and judge_other_driver(facts, host):
        return []  # another driver holds them, which is said on its own
    if in_job(facts):
        return [_not_asked_for(nvidia, driver)]
    return [
        Finding(
            rule="gpu-off-bus",
            severity="error",
            title=f"the NVIDIA driver {driver.version} runs, but shows no GPU",
            cause="The GPU failed when the driver addressed it, or has fallen off the bus; or a job scheduler keeps it "
            "for jobs that asked for one.",
            evidence=(*_evidence(nvidia, driver), f"{nvidia.num_pci} NVIDIA GPU(s) on the PCI bus"),
            needs="a GPU that answers",
            mend=("sudo dmesg | grep -E 'NVRM|Xid'", "switch the machine off and on again, not only restart it"),
        )
    ]


def _not_asked_for(nvidia: Nvidia, driver: Driver) -> Finding:
    return Finding(
        rule="slurm-gpu-not-requested",
        severity="warning",
        title="this Slurm job was given no GPU",
        cause="The driver shows a job only the GPUs that it asked for.",
        evidence=(*_evidence(nvidia, driver), "SLURM_JOB_ID is in the environment"),
        needs="a job that asks for a GPU",
        mend=("srun --gres=gpu:1 --pty bash", "sbatch --gres=gpu:1 …"),
    )


def _lost_after_reload(nvidia: Nvidia, driver: Driver) -> Finding:
    return Finding(
        rule="nvml-lost-after-daemon-reload",
        severity="error",
        title="this container has lost the right to its GPUs: NVML answers with an unknown error",
        cause="Most often systemd was reloaded on the host and applied the container's device rules anew, in which "
        "NVIDIA's files do not stand.",
        evidence=_evidence(nvidia, driver),
        needs="a container whose device rules name NVIDIA's files",
        mend=(
            "restart the container",
            "sudo nvidia-ctk system create-dev-char-symlinks --create-all  (on the host, so that it does not recur)",
        ),
    )


def _no_permission(driver: Driver, host: NvidiaHost | None) -> Finding:
    denied = () if host is None else tuple(f"{file} may not be opened for reading and writing" for file in host.denied)
    return Finding(
        rule="host-driver-missing",
        severity="unknown",
        title="not known: whether the GPUs work, as this user may not open them",
        cause="The device files are closed to this user, or a job scheduler keeps them for a job that asked for a GPU.",
        evidence=(f"{driver.version} read from {driver.source}", "NVML: no-permission", *denied),
        needs="the right to read and write /dev/nvidia*",
        mend=("ls -l /dev/nvidia*", "sudo usermod -aG video,render $USER  (then log in again)"),
    )


def as_version(text: str) -> tuple[int, ...] | None:
    """Return a version as numbers; None where a fact file holds something else."""
    try:
        return version_tuple(text)
    except ValueError:
        return None


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
    version = as_version(driver.version)
    if version is None:
        reason = Missing(reason=f"{driver.version!r} is no version of a driver"[:200])
        return [unknown("driver-too-old", f"whether the driver is new enough for {name}", reason)]
    cuda = cuda_of(row.cuda)
    evidence = (f"driver {driver.version}, read from {driver.source}",)
    if version < version_tuple(cuda.floor):
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
    if version < version_tuple(cuda.bundled):
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
