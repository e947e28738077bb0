"""Container engines, and what ties NVIDIA's driver to them."""

from __future__ import annotations

from typing import Literal

from torchdeck.machine.facts.missing import Fact, Missing

Daemon = Literal["reachable", "permission-denied", "not-running", "asleep", "remote"]


class Engine(Fact, frozen=True, kw_only=True):
    """Docker or Podman.

    Args:
        path: The program, the home folder folded to ``~``.
        version: Of the program, such as ``28.2.2``.
        server: What answers it: ``docker``, or ``podman`` behind Docker's command; None where nothing was asked.
        daemon: ``reachable``; ``permission-denied`` (its socket may not be opened); ``not-running``; ``asleep``
            (systemd would start it at the first call, so it was not asked); ``remote`` (on another machine, not
            asked). None for Podman, which has none.
        daemon_installed: Whether the daemon itself is on this machine, and not its command alone.
        daemon_version: None where the daemon was not asked.
        context: Which daemon the command talks to: ``default``, ``rootless``, ``desktop``, ``remote`` or ``other``.
        rootless: Whether containers run under this user's own id; None where it was not asked, and so below.
        desktop: Whether containers run in Docker Desktop's virtual machine.
        snap: Whether the program or the daemon comes from a snap.
        cgroup_driver: ``systemd`` or ``cgroupfs``.
        cgroup_version: ``1`` or ``2``.
        runtimes: Names of the OCI runtimes.
        default_runtime: The one that is taken unless another is asked for.
        cdi_spec_dirs: Where it looks for CDI specs; empty where CDI is off.
        storage: Where images are kept, the home folder folded to ``~``.
        storage_free_bytes: Space there; None where that is not on this machine, or was not asked.
    """

    path: str
    version: str | Missing
    server: str | None
    daemon: Daemon | Missing | None
    daemon_installed: bool
    daemon_version: str | Missing | None
    context: str | Missing | None
    rootless: bool | Missing | None
    desktop: bool | Missing | None
    snap: bool
    cgroup_driver: str | Missing | None
    cgroup_version: int | Missing | None
    runtimes: tuple[str, ...] | Missing | None
    default_runtime: str | Missing | None
    cdi_spec_dirs: tuple[str, ...] | Missing | None
    storage: str | Missing | None
    storage_free_bytes: int | Missing | None


class ToolkitConfig(Fact, frozen=True, kw_only=True):
    """A file ``nvidia-container-runtime/config.toml``; a value that it does not set has NVIDIA's own default.

    Args:
        path: The file, the home folder folded to ``~``.
        no_cgroups: Whether device control groups are left alone, as a rootless engine needs it.
        mode: ``auto``, ``legacy``, ``cdi``, ``csv``.
        ldconfig: The program that renews the library cache; ``@`` before it for the host's own. None: not set.
        ldconfig_exists: Whether the host has that program; None where it is not set.
    """

    path: str
    no_cgroups: bool
    mode: str
    ldconfig: str | None
    ldconfig_exists: bool | None


class Toolkit(Fact, frozen=True, kw_only=True):
    """NVIDIA's Container Toolkit.

    Args:
        version: Such as ``1.17.8``.
        hook: Whether ``nvidia-container-runtime-hook`` is there, by which Docker serves ``--gpus``.
        config: The machine's configuration; None where there is none.
        user_config: This user's own, which a rootless engine reads first; None where there is none.
    """

    version: str | Missing
    hook: bool
    config: ToolkitConfig | Missing | None
    user_config: ToolkitConfig | Missing | None


class CdiSpec(Fact, frozen=True, kw_only=True):
    """A CDI specification that names NVIDIA's devices.

    Args:
        path: The file.
        age_s: Seconds since it was written.
        driver: The driver whose libraries it names, such as ``550.54.15``; None where it names none.
        absent_devices: Device files that it names and that are not there.
    """

    path: str
    age_s: int
    driver: str | None
    absent_devices: tuple[str, ...]


class Engines(Fact, frozen=True, kw_only=True):
    """The engines of this machine, and NVIDIA's part in them.

    Args:
        docker: Docker's command; None where there is none.
        podman: Podman; None where there is none.
        toolkit: NVIDIA's Container Toolkit; None where there is none.
        cdi: The CDI specs for NVIDIA in ``/etc/cdi``, ``/var/run/cdi`` and where Docker looks besides.
        dev_char_links: Whether ``/dev/char`` has links to NVIDIA's devices; None where there are no such devices.
    """

    docker: Engine | Missing | None
    podman: Engine | Missing | None
    toolkit: Toolkit | Missing | None
    cdi: tuple[CdiSpec, ...] | Missing
    dev_char_links: bool | None
