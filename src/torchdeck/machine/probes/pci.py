"""The PCI bus as the kernel shows it: display controllers of every maker, and NVIDIA's switches."""

from __future__ import annotations

from pathlib import Path

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.nvidia import PciDevice

NVIDIA = "10de"
# PCI classes: 03xx are display controllers, 0680 a bridge of no named kind, which is what an NVSwitch calls itself.
_KINDS = {"0300": "vga", "0302": "3d"}
_NVSWITCH_CLASS = "0680"


def gather_pci(folder: Path) -> tuple[PciDevice, ...] | Missing:
    """Return display controllers and NVSwitches, by address.

    Args:
        folder: ``/sys/bus/pci/devices``.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        return Missing(reason=f"there is no {folder}" if not folder.is_dir() else f"{folder}: {error.strerror}")
    found = (_device(entry) for entry in entries)
    return tuple(device for device in found if device is not None)


def _device(entry: Path) -> PciDevice | None:
    vendor, kind = _number(entry / "vendor"), _number(entry / "class")[:4]
    if kind.startswith("03"):
        name = _KINDS.get(kind, "display")
    elif kind == _NVSWITCH_CLASS and vendor == NVIDIA:
        name = "nvswitch"
    else:
        return None
    try:
        driver: str | None = (entry / "driver").readlink().name or None
    except (OSError, ValueError):
        driver = None
    return PciDevice(address=entry.name, vendor=vendor, device=_number(entry / "device"), kind=name, driver=driver)


def _number(file: Path) -> str:
    """Return a hexadecimal number without its ``0x``; empty where it cannot be read."""
    try:
        return file.read_text(encoding="ascii", errors="replace").strip().lower().removeprefix("0x")
    except OSError:
        return ""
