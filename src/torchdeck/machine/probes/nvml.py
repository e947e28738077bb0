"""NVIDIA's driver and GPUs: through NVML where its library can be loaded, else from /proc, /dev and the PCI bus.

pynvml is imported only where there is a library for it to load.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

from torchdeck.machine.facts import Driver, Gpu, Missing, Nvidia
from torchdeck.machine.probes.bounded import bounded

_LIBRARY = "libnvidia-ml.so.1"
_TIMEOUT_S = 5.0
_PROC = Path("/proc/driver/nvidia/version")
_PCI = Path("/sys/bus/pci/devices")
_DEV = Path("/dev")


def gather_nvidia() -> Nvidia:
    """Return what there is of NVIDIA."""
    library = _can_load()
    driver: Driver | Missing | None = _driver_of_proc()
    gpus: tuple[Gpu, ...] | Missing
    if library:
        answer = bounded(_ask_nvml, what="NVML", timeout_s=_TIMEOUT_S)
        if isinstance(answer, Missing):
            driver = driver or answer
            gpus = answer
        elif answer is None:  # NVML's own word that no driver is loaded
            gpus = () if driver is None else Missing(reason="NVML says that no driver is loaded, /proc names one")
        else:
            driver, gpus = answer
    elif driver is None:
        gpus = ()
    else:
        gpus = Missing(reason=f"a driver is loaded, but its library {_LIBRARY} cannot be")
    return Nvidia(driver=driver, gpus=gpus, num_pci=_num_pci(), devices=_devices(), library=library)


def _can_load() -> bool:
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _ask_nvml() -> tuple[Driver, tuple[Gpu, ...]] | None:
    """Return the driver and its GPUs; None if NVML says that no driver is loaded.

    Raises:
        Exception: NVML failed otherwise, in its own words.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_DRIVER_NOT_LOADED:
            return None
        raise
    try:
        number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
        driver = Driver(
            version=_text(pynvml.nvmlSystemGetDriverVersion()),
            cuda=f"{number // 1000}.{number % 1000 // 10}",
            source="NVML",
        )
        return driver, tuple(_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: Any, index: int) -> Gpu:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:  # a GPU that fell off the bus
        missing = Missing(reason=f"NVML: {error}")
        return Gpu(index=index, name="unknown", cc=missing, memory_bytes=missing)

    def ask(function: Any) -> Any:
        try:
            return function(handle)
        except pynvml.NVMLError as error:
            return Missing(reason=f"NVML: {error}")

    name, cc, memory = (
        ask(pynvml.nvmlDeviceGetName),
        ask(pynvml.nvmlDeviceGetCudaComputeCapability),
        ask(pynvml.nvmlDeviceGetMemoryInfo),
    )
    return Gpu(
        index=index,
        name="unknown" if isinstance(name, Missing) else _text(name),
        cc=cc if isinstance(cc, Missing) else (int(cc[0]), int(cc[1])),
        memory_bytes=memory if isinstance(memory, Missing) else int(memory.total),
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _driver_of_proc() -> Driver | None:
    """Return the driver that the kernel module names; the file is there only while the module is loaded."""
    try:
        text = _PROC.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", text)
    if match is None:
        return None
    return Driver(version=match[1], cuda=Missing(reason="only NVML tells it"), source=str(_PROC))


def _num_pci() -> int | Missing:
    """Count NVIDIA's display controllers (PCI class 03) on the bus."""
    if not _PCI.is_dir():
        return Missing(reason=f"there is no {_PCI}")
    num = 0
    for device in _PCI.iterdir():
        try:
            vendor, kind = (device / "vendor").read_text().strip(), (device / "class").read_text().strip()
        except OSError:
            continue
        num += vendor == "0x10de" and kind.startswith("0x03")
    return num


def _devices() -> tuple[str, ...]:
    return tuple(sorted(str(path) for path in _DEV.glob("nvidia*")))
