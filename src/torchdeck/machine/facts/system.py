"""The operating system beneath everything."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class System(Fact, frozen=True, kw_only=True):
    """The operating system.

    Args:
        os: ``linux``, ``darwin``.
        arch: As the kernel names it: ``x86_64``, ``aarch64``.
        kernel: The kernel's release.
        distribution: ``id`` of os-release, such as ``debian``.
        pretty_name: What the distribution calls itself.
        glibc: Version of the C library.
        container: What makes this look like a container, such as ``/.dockerenv``; empty outside.
        wsl: Whether this is Linux on Windows.
    """

    os: str
    arch: str
    kernel: str
    distribution: str | Missing
    pretty_name: str | Missing
    glibc: str | Missing
    container: str | Missing
    wsl: bool
