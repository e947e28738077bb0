"""What kernel, firmware, files and processes show of NVIDIA, without its library.

Every reader takes the root folder, so that the tree of another machine can be read. In a container the root is the
container's: its processes, its ``/lib/modules``, often without the firmware's variables.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from torchdeck import runner
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.nvidia import DriverLibrary, NvidiaHost, PciDevice, Xid
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.kernel_modules import gather_kernels, gather_modules
from torchdeck.machine.probes.pci import NVIDIA
from torchdeck.machine.probes.shared_libraries import find_library

_FIRMWARE = "sys/firmware/efi"
# The name and the maker's number of the variable, both fixed by the UEFI specification; four bytes of attributes
# come before its value.
_SECURE_BOOT = "efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# The kernel cuts the name of a process after 15 characters.
_FABRIC_MANAGER = "nv-fabricmanage"
# Boards with NVSwitches that the bus of the processor does not show carry at least so many GPUs.
_NUM_GPUS_WITH_FABRIC = 4
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (\d{1,4})\b", re.ASCII)
_MAX_XIDS = 64
_LOG_TIMEOUT_S = 1.0
_LIBRARY_TIMEOUT_S = 2.0


def gather_nvidia_host(
    root: Path,
    pci: tuple[PciDevice, ...] | Missing,
    search: str = "",
    read_log: Callable[[], str | Missing] | None = None,
) -> NvidiaHost:
    """Return what the machine shows of NVIDIA.

    Args:
        root: ``/``.
        pci: The devices on the bus.
        search: The value of LD_LIBRARY_PATH.
        read_log: Returns the kernel's log; ``dmesg`` when None, and only where there is a GPU.
    """
    devices = () if isinstance(pci, Missing) else tuple(device for device in pci if device.vendor == NVIDIA)
    num_switches = sum(device.kind == "nvswitch" for device in devices)
    num_gpus = len(devices) - num_switches
    # A place on a network whose server is gone never answers, and LD_LIBRARY_PATH often names one.
    nvml, libcuda = (
        bounded(lambda soname=soname: _library(soname, root, search), what=soname, timeout_s=_LIBRARY_TIMEOUT_S)  # type: ignore[misc]
        for soname in ("libnvidia-ml.so.1", "libcuda.so.1")
    )
    log = (read_log or read_kernel_log)() if num_gpus else Missing(reason="not read where no NVIDIA GPU is on the bus")
    return NvidiaHost(
        pci=pci,
        modules=gather_modules(root / "proc"),
        kernels=gather_kernels(root / "lib" / "modules", os.uname().release if root == Path("/") else _release(root)),
        secure_boot=gather_secure_boot(root),
        nvml=nvml,
        libcuda=libcuda,
        nvidia_modprobe=_has_modprobe(root),
        prime=_prime(root),
        fabric_manager=_fabric_manager(root) if num_switches or num_gpus >= _NUM_GPUS_WITH_FABRIC else None,
        denied=_denied(root),
        num_caps=sum(1 for _ in _glob(root / "dev" / "nvidia-caps", "nvidia-cap*")),
        num_char_links=_num_char_links(root),
        xids=log if isinstance(log, Missing) else parse_xids(log),
    )


def _library(soname: str, root: Path, search: str) -> DriverLibrary | None:
    return find_library(soname, root, search)


def _release(root: Path) -> str:
    """Return the release of a kernel whose tree lies somewhere else, as its ``/proc`` names it."""
    return _text(root / "proc" / "sys" / "kernel" / "osrelease").strip()


def gather_secure_boot(root: Path) -> bool | Missing | None:
    """Return whether the firmware loads signed code only; None where there is no EFI."""
    if not (root / _FIRMWARE).is_dir():
        return None
    file = root / _FIRMWARE / _SECURE_BOOT
    try:
        value = file.read_bytes()
    except FileNotFoundError:
        # Firmware without Secure Boot lacks the variable; a folder without any was not mounted.
        folder = file.parent
        return False if any(_glob(folder, "*")) else Missing(reason="the firmware's variables are not mounted")
    except OSError as error:
        return Missing(reason=f"the firmware's variable SecureBoot: {error.strerror}")
    return value[4] == 1 if len(value) == 5 else Missing(reason=f"SecureBoot has {len(value)} bytes, not 5")


def _has_modprobe(root: Path) -> bool:
    if root == Path("/"):
        return shutil.which("nvidia-modprobe") is not None or (root / "usr/bin/nvidia-modprobe").exists()
    return (root / "usr/bin/nvidia-modprobe").exists()


def _prime(root: Path) -> str | Missing | None:
    """Return what Ubuntu's ``prime-select`` wrote."""
    file = root / "etc" / "prime-discrete"
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()[:40]
    except FileNotFoundError:
        return None
    except OSError as error:
        return Missing(reason=f"{file.name}: {error.strerror}")


def _fabric_manager(root: Path) -> bool | Missing:
    """Look for the process by its name; others' processes may be hidden from this user."""
    proc = root / "proc"
    for entry in _glob(proc, "[0-9]*"):
        if _text(entry / "comm").strip() == _FABRIC_MANAGER:
            return True
    if not _text(proc / "1" / "comm"):
        return Missing(reason="the processes of other users are hidden in /proc")
    return False


def _denied(root: Path) -> tuple[str, ...]:
    files = (entry for entry in _glob(root / "dev", "nvidia*") if not entry.is_dir())
    return tuple(sorted(f"/dev/{file.name}" for file in files if not os.access(file, os.R_OK | os.W_OK)))


def _num_char_links(root: Path) -> int:
    num = 0
    for entry in _glob(root / "dev" / "char", "*"):
        try:
            num += "nvidia" in str(entry.readlink())
        except (OSError, ValueError):
            continue
    return num


def read_kernel_log() -> str | Missing:
    """Return the kernel's log; on many machines only root may read it."""
    done = runner.run(["dmesg"], timeout_s=_LOG_TIMEOUT_S)
    if done.ok:
        return done.stdout
    said = (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1]
    return Missing(reason=f"dmesg: {said}"[:200])


def parse_xids(log: str) -> tuple[Xid, ...]:
    """Return the errors that the driver reported, counted by GPU and kind; nothing else of the log is kept."""
    counts = Counter((_address(found[1]), int(found[2])) for found in _XID.finditer(log))
    rows = (Xid(number=number, pci=pci, count=count) for (pci, number), count in sorted(counts.items()))
    return tuple(rows)[:_MAX_XIDS]


def _address(text: str) -> str:
    """Return an address as sysfs writes it: a domain of four digits."""
    domain, bus, device = text.lower().split(":")
    return f"{domain[-4:]}:{bus}:{device}"


def _glob(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def _text(file: Path) -> str:
    """Return a small file's text; empty where it cannot be read, as that of a process that has just ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
