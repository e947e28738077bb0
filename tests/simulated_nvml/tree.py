"""The files of another machine: /proc, /sys, /dev, /lib/modules and /etc under a folder."""

from __future__ import annotations

import struct
from pathlib import Path

RUNNING = "6.1.0-18-amd64"
_PROC_TEXT = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Mar  5 22:23:56 UTC 2024\n"
_SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


class Tree:
    """A machine's files; each method adds a part of them and returns the tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/sys/kernel/osrelease", RUNNING + "\n")
        self.write("proc/modules", "ext4 1000000 1 - Live 0x0\n")
        self.process(1, "systemd")
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "dev").mkdir()

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def process(self, pid: int, name: str) -> Tree:
        """Add a running process."""
        self.write(f"proc/{pid}/comm", name[:15] + "\n")
        return self

    def driver(self, version: str = "550.54.15") -> Tree:
        """Load the driver."""
        self.write("proc/driver/nvidia/version", _PROC_TEXT.format(version=version))
        self.write("proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\next4 1 1 - Live 0x0\n")
        return self

    def pci(self, number: int, driver: str | None, vendor: str = "10de", kind: str = "030200") -> Tree:
        """Add a device at 0000:NUMBER:00.0."""
        folder = self.root / f"sys/bus/pci/devices/0000:{number:02x}:00.0"
        folder.mkdir(parents=True)
        for name, value in (("vendor", vendor), ("device", "2330"), ("class", kind)):
            (folder / name).write_text(f"0x{value}\n")
        if driver:
            (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        return self

    def gpus(self, num: int, driver: str | None = "nvidia") -> Tree:
        """Add GPUs where the simulated NVML has them."""
        for index in range(num):
            self.pci(0x10 + index, driver)
        return self

    def switches(self, num: int = 4) -> Tree:
        """Add NVSwitches."""
        for index in range(num):
            self.pci(0x50 + index, "nvidia-nvswitch", kind="068000")
        return self

    def devices(self, *names: str) -> Tree:
        """Add device files, as plain files."""
        for name in names:
            self.write(f"dev/{name}", "")
        return self

    def kernel(self, release: str = RUNNING, module: str | None = "updates/dkms/nvidia.ko", tail: bytes = b"") -> Tree:
        """Install a kernel, with or without NVIDIA's module."""
        folder = f"lib/modules/{release}"
        (self.root / folder / "kernel").mkdir(parents=True)
        others = "kernel/drivers/video/fbdev/nvidia/nvidiafb.ko: kernel/drivers/video/vgastate.ko\n"
        others += "kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko:\n"
        own = f"{module}:\n{str(module).replace('nvidia', 'nvidia-uvm')}: {module}\n" if module else ""
        self.write(f"{folder}/modules.dep", others + own)
        if module:
            self.write(f"{folder}/{module}", b"\x7fELF" + bytes(200) + tail)
        return self

    def efi(self, *, secure: bool) -> Tree:
        """Start through EFI."""
        self.write(f"sys/firmware/efi/efivars/{_SECURE_BOOT}", struct.pack("<IB", 6, secure))
        return self

    def library(self, name: str = "libnvidia-ml", version: str = "550.54.15", folder: str = "usr/lib/x86") -> Tree:
        """Install a library of the driver, and enter it into the loader's cache."""
        self.write(f"{folder}/{name}.so.{version}", b"\x7fELF\x02" + bytes(64))
        (self.root / folder / f"{name}.so.1").symlink_to(f"{name}.so.{version}")
        cache = self.root / "etc/ld.so.cache"
        old = cache.read_bytes() if cache.exists() else b"glibc-ld.so.cache1.1" + bytes(64)
        self.write("etc/ld.so.cache", old + f"{name}.so.1\0/{folder}/{name}.so.1\0".encode())
        return self


def sound(root: Path, num_gpus: int = 8) -> Tree:
    """Return a machine with so many GPUs on which everything is as it should be."""
    names = [f"nvidia{index}" for index in range(num_gpus)]
    tree = Tree(root).driver().gpus(num_gpus).kernel().library().library("libcuda")
    return tree.devices(*names, "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
