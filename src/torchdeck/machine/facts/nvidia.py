"""NVIDIA's driver and GPUs, and what can be seen of them where the driver does not answer.

``None`` stands for *there is none* or *this GPU or driver does not have it*, ``Missing`` for *could not be known*.
A file that an older torchdeck saved lacks the later fields; they are then ``NOT_GATHERED``, on which no rule speaks.
"""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing

NOT_GATHERED = Missing(reason="not gathered")


class Driver(Fact, frozen=True, kw_only=True):
    """A loaded driver.

    Args:
        version: Such as ``550.54.15``.
        cuda: The highest CUDA release that it supports, such as ``12.4``.
        source: Where this was read.
    """

    version: str
    cuda: str | Missing
    source: str


class Mig(Fact, frozen=True, kw_only=True):
    """Multi-Instance GPU, the splitting of one GPU into several.

    Args:
        enabled: Whether the GPU is in this mode now.
        pending: Whether it will be after the next reset.
        num_instances: Slices with a compute instance that can be seen from here.
    """

    enabled: bool
    pending: bool
    num_instances: int | Missing


class Ecc(Fact, frozen=True, kw_only=True):
    """Error correction of the GPU's memory.

    Args:
        enabled: Whether it is on.
        num_uncorrected_volatile: Errors beyond correction since the driver was loaded.
        num_uncorrected_aggregate: Errors beyond correction in the board's life.
        retirement_pending: Whether pages wait for a restart to be taken out of use (GPUs before Ampere).
        remap_pending: Whether rows wait for a reset to be replaced by spare ones (Ampere and later).
        remap_failed: Whether a row could not be replaced, as no spare one was left.
    """

    enabled: bool | Missing | None
    num_uncorrected_volatile: int | Missing | None
    num_uncorrected_aggregate: int | Missing | None
    retirement_pending: bool | Missing | None
    remap_pending: bool | Missing | None
    remap_failed: bool | Missing | None


class Clocks(Fact, frozen=True, kw_only=True):
    """The clocks of the multiprocessors, and what holds them down.

    Args:
        sm_mhz: Now.
        sm_max_mhz: The highest that the board allows.
        reasons: Why it is not higher, in NVML's words: ``gpu-idle``, ``applications-clocks-setting``,
            ``sw-power-cap``, ``hw-slowdown``, ``sync-boost``, ``sw-thermal-slowdown``, ``hw-thermal-slowdown``,
            ``hw-power-brake-slowdown``, ``display-clock-setting``.
    """

    sm_mhz: int | Missing | None
    sm_max_mhz: int | Missing | None
    reasons: tuple[str, ...] | Missing | None


class PcieLink(Fact, frozen=True, kw_only=True):
    """The link to the processor. An idle GPU lowers its generation, so that only a busy one can be measured.

    Args:
        generation: Now.
        width: Lanes now.
        generation_max: The highest that GPU and slot reach together.
        width_max: The widest that they reach together.
    """

    generation: int | Missing | None
    width: int | Missing | None
    generation_max: int | Missing | None
    width_max: int | Missing | None


class Processes(Fact, frozen=True, kw_only=True):
    """Processes of others that compute on a GPU: how many, and what they hold; never who they are.

    Args:
        num: How many can be seen from here; a container sees its own only.
        memory_bytes: What they hold together; None where the driver does not tell.
    """

    num: int
    memory_bytes: int | None


class Fabric(Fact, frozen=True, kw_only=True):
    """How far a GPU has joined the NVSwitch fabric (Hopper and later).

    Args:
        state: ``not-started``, ``in-progress``, ``completed``.
        status: NVML's error number of the joining; 0 where it went well, or has not ended.
        faults: What is wrong with a joined fabric: ``degraded-bandwidth``, ``route-recovery``, ``route-unhealthy``,
            ``access-timeout-recovery``.
    """

    state: str
    status: int
    faults: tuple[str, ...]


class Gpu(Fact, frozen=True, kw_only=True):
    """One GPU.

    Args:
        index: Its number in NVML's order.
        name: Its product name.
        cc: Its compute capability, (9, 0) for an H100.
        memory_bytes: All of its memory.
        fault: Why NVML cannot talk to it at all: ``gpu-is-lost``, ``reset-required``, ``insufficient-power``,
            ``no-permission`` or another of its error names; None where it can.
        pci: Its address on the PCI bus, such as ``0000:3b:00.0``.
        memory_used_bytes: What is taken, the driver's own part included.
        persistence: Whether the driver keeps it initialised while nobody uses it.
        compute_mode: ``default``, ``exclusive-thread``, ``prohibited``, ``exclusive-process``.
        mig: Its splitting; None for a GPU that cannot be split.
        ecc: Its memory's health; None for a GPU that does not tell.
        clocks: Its clocks.
        temperature_c: Of the chip, in degrees Celsius.
        power_watts: What it draws.
        power_limit_watts: What it may draw.
        pcie: Its link.
        processes: Who else computes on it.
        fabric: Its place in an NVSwitch fabric; None where there is none.
        num_nvlinks: Active NVLinks; None for a GPU without any.
    """

    index: int
    name: str
    cc: tuple[int, int] | Missing
    memory_bytes: int | Missing
    fault: str | None = None
    pci: str | Missing = NOT_GATHERED
    memory_used_bytes: int | Missing | None = NOT_GATHERED
    persistence: bool | Missing | None = NOT_GATHERED
    compute_mode: str | Missing | None = NOT_GATHERED
    mig: Mig | Missing | None = NOT_GATHERED
    ecc: Ecc | Missing | None = NOT_GATHERED
    clocks: Clocks | Missing | None = NOT_GATHERED
    temperature_c: int | Missing | None = NOT_GATHERED
    power_watts: float | Missing | None = NOT_GATHERED
    power_limit_watts: float | Missing | None = NOT_GATHERED
    pcie: PcieLink | Missing | None = NOT_GATHERED
    processes: Processes | Missing | None = NOT_GATHERED
    fabric: Fabric | Missing | None = NOT_GATHERED
    num_nvlinks: int | Missing | None = NOT_GATHERED


class PciDevice(Fact, frozen=True, kw_only=True):
    """A display controller of any maker, or an NVSwitch, on the PCI bus.

    Args:
        address: Such as ``0000:3b:00.0``.
        vendor: The maker's number, ``10de`` for NVIDIA.
        device: The product's number.
        kind: ``vga``, ``3d`` (a GPU without a display), ``display`` or ``nvswitch``.
        driver: The kernel driver that holds it: ``nvidia``, ``nouveau``, ``nova_core``, ``vfio-pci``; None if none.
    """

    address: str
    vendor: str
    device: str
    kind: str
    driver: str | None


class Kernel(Fact, frozen=True, kw_only=True):
    """An installed kernel, and NVIDIA's module for it.

    Args:
        release: Such as ``6.1.0-18-amd64``.
        running: Whether it is the one that runs.
        module: The module's file beneath the kernel's folder; None if there is none.
        signed: Whether a signature stands at the end of that file; Missing where the file is compressed.
    """

    release: str
    running: bool
    module: str | Missing | None
    signed: bool | Missing | None


class DriverLibrary(Fact, frozen=True, kw_only=True):
    """A library of the driver, where the loader would find it.

    Args:
        path: The file that the links end at, the home folder folded to ``~``.
        version: The driver's version in that file's name, such as ``550.54.15``.
    """

    path: str
    version: str | Missing


class Xid(Fact, frozen=True, kw_only=True):
    """An error that the driver reported of a GPU since the machine started.

    Args:
        number: NVIDIA's number of the kind of error.
        pci: The GPU's address without the function, such as ``0000:3b:00``.
        count: How often.
    """

    number: int
    pci: str
    count: int


class NvidiaHost(Fact, frozen=True, kw_only=True):
    """What kernel, bus, files and processes show of NVIDIA without its library.

    Args:
        pci: Display controllers and NVSwitches.
        modules: Loaded kernel modules that are about NVIDIA's GPUs, such as ``nvidia_uvm`` and ``nouveau``.
        kernels: The installed kernels.
        secure_boot: Whether the firmware loads signed code only; None where there is no EFI.
        nvml: The file behind ``libnvidia-ml.so.1``; None if the loader has none.
        libcuda: The file behind ``libcuda.so.1``.
        nvidia_modprobe: Whether the program that makes missing device files is there.
        prime: The choice of a laptop's GPU in ``/etc/prime-discrete``: ``nvidia``, ``on-demand``, ``intel``; None
            where there is no such choice.
        fabric_manager: Whether ``nv-fabricmanager`` runs, seen from here; None where there is nothing to manage.
        denied: Device files that this user may not read and write.
        num_caps: Files in ``/dev/nvidia-caps``, which give the right to a MIG slice.
        num_char_links: Links in ``/dev/char`` to NVIDIA's device files, which systemd needs to know them again.
        xids: What the kernel's log says of errors.
    """

    pci: tuple[PciDevice, ...] | Missing
    modules: tuple[str, ...] | Missing
    kernels: tuple[Kernel, ...] | Missing
    secure_boot: bool | Missing | None
    nvml: DriverLibrary | Missing | None
    libcuda: DriverLibrary | Missing | None
    nvidia_modprobe: bool
    prime: str | Missing | None
    fabric_manager: bool | Missing | None
    denied: tuple[str, ...]
    num_caps: int
    num_char_links: int
    xids: tuple[Xid, ...] | Missing


class Nvidia(Fact, frozen=True, kw_only=True):
    """What there is of NVIDIA.

    Args:
        driver: The loaded driver; None if there is none.
        gpus: The GPUs that the driver shows, none without a driver.
        num_pci: NVIDIA display controllers on the PCI bus, driver or not.
        devices: The device files ``/dev/nvidia*``.
        library: Whether the driver's library ``libnvidia-ml.so.1`` can be loaded.
        nvml: How NVML answered: ``success``, ``no-library``, ``not-asked`` (no trace of a GPU), ``no-answer`` (it
            hung), or its error by name, such as ``driver-not-loaded``, ``lib-rm-version-mismatch``,
            ``no-permission``, ``unknown``; empty in a file of an older torchdeck.
        host: The rest of what the machine shows.
    """

    driver: Driver | Missing | None
    gpus: tuple[Gpu, ...] | Missing
    num_pci: int | Missing
    devices: tuple[str, ...]
    library: bool
    nvml: str = ""
    host: NvidiaHost | Missing = NOT_GATHERED
