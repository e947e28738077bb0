"""NVIDIA's driver and GPUs: through NVML where its library can be loaded, and from /proc, /dev and the PCI bus.

pynvml is imported only where there is a library for it to load. NVML is asked only where there is a trace of a GPU:
called as root it makes device files and has modules loaded, which a question should not do for nothing. Without
persistence mode the first question initialises every GPU, which takes seconds on a machine with eight of them.
"""

from __future__ import annotations

import ctypes
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchdeck.machine.facts import Driver, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import NvidiaHost, PciDevice
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.nvidia_host import gather_nvidia_host
from torchdeck.machine.probes.nvml_gpu import GpuReader, error_name
from torchdeck.machine.probes.pci import NVIDIA, gather_pci

_LIBRARY = "libnvidia-ml.so.1"
# Below the limit of the whole probe in gather.py, so that what the files say is not lost with it.
_TIMEOUT_S = 20.0
_HOST_TIMEOUT_S = 6.0
_ROOT = Path("/")
_PROC = Path("/proc/driver/nvidia/version")
_PCI = Path("/sys/bus/pci/devices")
_DEV = Path("/dev")

# Device files of GPUs that are on no PCI bus: those of Windows seen from Linux, and of NVIDIA's own processors.
_OFF_BUS = ("nvidia*", "dxg", "nvmap", "nvhost*")

_Gpus = tuple[Gpu, ...]


def gather_nvidia() -> Nvidia:
    """Return what there is of NVIDIA."""
    pci = gather_pci(_PCI)
    library = _can_load()
    in_kernel = _driver_of_proc()
    with ThreadPoolExecutor(max_workers=2) as pool:
        host = pool.submit(bounded, lambda: _host(pci), what="the machine's files", timeout_s=_HOST_TIMEOUT_S)
        ask = library and (in_kernel is not None or _may_have_gpu(pci))
        asked = pool.submit(bounded, _ask_nvml, what="NVML", timeout_s=_TIMEOUT_S) if ask else None
        answer = None if asked is None else asked.result()
    driver: Driver | Missing | None = in_kernel
    gpus: _Gpus | Missing
    if answer is None:
        nvml = "not-asked" if library else "no-library"
        gpus = () if driver is None else Missing(reason=f"a driver is loaded, but its library {_LIBRARY} cannot be")
    elif isinstance(answer, Missing):
        nvml = "no-answer" if answer.reason.startswith("NVML did not answer") else "failed"
        driver, gpus = driver or answer, answer
    elif isinstance(answer, str):
        nvml = answer
        driver, gpus = _refused(answer, in_kernel)
    else:
        nvml = "success"
        driver, gpus = answer
    return Nvidia(
        driver=driver,
        gpus=gpus,
        num_pci=_num_pci(pci),
        devices=_devices(),
        library=library,
        nvml=nvml,
        host=host.result(),
    )


def _refused(error: str, in_kernel: Driver | None) -> tuple[Driver | Missing | None, _Gpus | Missing]:
    """Return what is known where NVML would not start."""
    if error == "driver-not-loaded":
        gpus: _Gpus | Missing = (
            () if in_kernel is None else Missing(reason="NVML says that no driver is loaded, /proc names one")
        )
        return in_kernel, gpus
    missing = Missing(reason=f"NVML does not start: {error}")
    return in_kernel or missing, missing


def _may_have_gpu(pci: tuple[PciDevice, ...] | Missing) -> bool:
    """Whether anything, known or not, speaks for a GPU."""
    return _num_pci(pci) != 0 or any(True for pattern in _OFF_BUS for _ in _DEV.glob(pattern))


def _can_load() -> bool:
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _host(pci: tuple[PciDevice, ...] | Missing) -> NvidiaHost:
    return gather_nvidia_host(_ROOT, pci, os.environ.get("LD_LIBRARY_PATH", ""))


def _ask_nvml() -> tuple[Driver, _Gpus] | str:
    """Return the driver and its GPUs, or the name of the error with which NVML does not start.

    Raises:
        Exception: NVML failed otherwise, in its own words.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return error_name(pynvml, error)
    try:
        driver = Driver(version=_text(pynvml.nvmlSystemGetDriverVersion()), cuda=_cuda(pynvml), source="NVML")
        return driver, tuple(GpuReader(pynvml, index).read() for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _cuda(pynvml: Any) -> str | Missing:
    try:
        number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    except pynvml.NVMLError as error:
        return Missing(reason=f"NVML: {error}")
    return f"{number // 1000}.{number % 1000 // 10}"


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


def _num_pci(pci: tuple[PciDevice, ...] | Missing) -> int | Missing:
    """Count NVIDIA's display controllers on the bus."""
    if isinstance(pci, Missing):
        return pci
    return sum(device.vendor == NVIDIA and device.kind != "nvswitch" for device in pci)


def _devices() -> tuple[str, ...]:
    return tuple(sorted(f"/dev/{path.name}" for path in _DEV.glob("nvidia*")))
