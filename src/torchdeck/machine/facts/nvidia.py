"""NVIDIA's driver and GPUs, and what can be seen of them where the driver does not answer."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


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


class Gpu(Fact, frozen=True, kw_only=True):
    """One GPU.

    Args:
        index: Its number in NVML's order.
        name: Its product name.
        cc: Its compute capability, (9, 0) for an H100.
        memory_bytes: All of its memory.
    """

    index: int
    name: str
    cc: tuple[int, int] | Missing
    memory_bytes: int | Missing


class Nvidia(Fact, frozen=True, kw_only=True):
    """What there is of NVIDIA.

    Args:
        driver: The loaded driver; None if there is none.
        gpus: The GPUs that the driver shows, none without a driver.
        num_pci: NVIDIA display controllers on the PCI bus, driver or not.
        devices: The device files ``/dev/nvidia*``.
        library: Whether the driver's library ``libnvidia-ml.so.1`` can be loaded.
    """

    driver: Driver | Missing | None
    gpus: tuple[Gpu, ...] | Missing
    num_pci: int | Missing
    devices: tuple[str, ...]
    library: bool
