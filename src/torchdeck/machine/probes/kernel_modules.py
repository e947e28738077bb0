"""Kernel modules: which are loaded, and for which installed kernel NVIDIA's was built.

Which file is the driver is read from each kernel's ``modules.dep``, the list that ``modprobe`` itself goes by. A
module whose file changed after ``depmod`` ran is not noticed.
"""

from __future__ import annotations

import re
from pathlib import Path

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.nvidia import Kernel

_ABOUT_GPUS = re.compile(r"nvidia\w*|nouveau|nova_core|vfio_pci", re.ASCII)
# Debian builds the same module as nvidia-current.ko or nvidia-tesla-470.ko; -drm, -modeset, -uvm and -peermem are
# its companions, nvidiafb and nvidia-wmi-ec-backlight something else.
_MODULE = re.compile(
    r"^((?:\S*/)?nvidia(?:-(?:current|legacy|tesla)(?:-[\dx]+)?(?:-open)?|-open)?\.ko(\.\w+)?):",
    re.MULTILINE | re.ASCII,
)
_SIGNATURE = b"~Module signature appended~\n"


def gather_modules(proc: Path) -> tuple[str, ...] | Missing:
    """Return the loaded modules that are about NVIDIA's GPUs.

    Args:
        proc: ``/proc``.
    """
    try:
        text = (proc / "modules").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return Missing(reason=f"/proc/modules cannot be read: {error.strerror}")
    names = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip())
    return tuple(sorted({name for name in names if _ABOUT_GPUS.fullmatch(name)}))


def gather_kernels(folder: Path, running: str) -> tuple[Kernel, ...] | Missing:
    """Return the installed kernels, those that were removed and left files behind not among them.

    Args:
        folder: ``/lib/modules``.
        running: The release of the running kernel.
    """
    try:
        kernels = sorted(entry for entry in folder.iterdir() if (entry / "kernel").is_dir())
    except OSError:
        return Missing(reason="there is no /lib/modules that can be read")
    return tuple(_kernel(entry, running) for entry in kernels)


def _kernel(folder: Path, running: str) -> Kernel:
    module: str | Missing | None
    signed: bool | Missing | None = None
    try:
        text = (folder / "modules.dep").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        module = Missing(reason=f"modules.dep of kernel {folder.name}: {error.strerror}")
    else:
        match = _MODULE.search(text) if "nvidia" in text else None
        module = match[1] if match else None
        if match:
            signed = Missing(reason="the module's file is compressed") if match[2] else _signed(folder / match[1])
    return Kernel(release=folder.name, running=folder.name == running, module=module, signed=signed)


def _signed(file: Path) -> bool | Missing:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - len(_SIGNATURE)))
            return stream.read() == _SIGNATURE
    except OSError as error:
        return Missing(reason=f"{file.name} cannot be read: {error.strerror}")
