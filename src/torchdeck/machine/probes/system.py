"""The operating system, from the kernel and from /etc/os-release."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from torchdeck.machine.facts import Missing, System

_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")


def gather_system() -> System:
    """Return the operating system."""
    name = os.uname()
    release = _os_release()
    return System(
        os=sys.platform,
        arch=name.machine,
        kernel=name.release,
        distribution=release.get("ID") or Missing(reason="os-release has no ID, or is not there"),
        pretty_name=release.get("PRETTY_NAME") or Missing(reason="os-release has no PRETTY_NAME, or is not there"),
        glibc=_glibc(),
        container=_container(),
        wsl="microsoft" in name.release.lower(),
    )


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _glibc() -> str | Missing:
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        text = ""
    return text.removeprefix("glibc ") or Missing(reason="the C library is not glibc")


def _container() -> str | Missing:
    for file in _CONTAINER_FILES:
        if Path(file).exists():
            return file
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "KUBERNETES_SERVICE_HOST"
    try:
        groups = Path("/proc/1/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Missing(reason="/proc/1/cgroup cannot be read")
    for word in ("docker", "kubepods", "libpod", "containerd", "lxc"):
        if word in groups:
            return f"/proc/1/cgroup names {word}"
    return ""
