"""Docker, Podman, NVIDIA's Container Toolkit and CDI: from their own programs and files.

No daemon is started for the sake of a question: Docker is asked only where something answers on its socket already,
Podman only where it has a storage. A daemon on another machine is not asked at all. What it does not know: what
other users' rootless engines do, and what a daemon was configured with since it was last started.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from torchdeck import places, runner
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import CdiSpec, Daemon, Engine, Engines
from torchdeck.machine.probes import engine_info
from torchdeck.machine.probes.docker_socket import Endpoint, find_endpoint, state_of
from torchdeck.machine.probes.engine_info import Info
from torchdeck.machine.probes.files import fold_person, is_there, names_in, names_of_user
from torchdeck.machine.probes.nvidia_toolkit import gather_toolkit, read_cdi

ROOT = Path("/")
_TIMEOUT_S = 4.0


def gather_engines(root: Path = ROOT, environment: Mapping[str, str] | None = None) -> Engines:
    """Return the engines of this machine, and NVIDIA's part in them."""
    environment = os.environ if environment is None else environment
    docker = gather_docker(root, environment)
    extra = docker.cdi_spec_dirs if isinstance(docker, Engine) else ()
    dirs = extra if isinstance(extra, tuple) else ()
    cdi: tuple[CdiSpec, ...] | Missing = read_cdi(root, dirs)
    return Engines(
        docker=docker,
        podman=gather_podman(root, environment),
        toolkit=gather_toolkit(root, environment),
        cdi=cdi,
        dev_char_links=read_dev_char(root),
    )


def gather_docker(root: Path, environment: Mapping[str, str]) -> Engine | Missing | None:
    """Return Docker; None where its command is not there, or is Podman's under that name."""
    program = shutil.which("docker", path=environment.get("PATH"))
    if program is None:
        return None
    names = names_of_user()
    endpoint = find_endpoint(environment, places.home())
    daemon = state_of(endpoint, root)
    info: Info | Missing | None = None
    if daemon == "reachable":
        done = runner.run([program, "info", "--format", "{{json .}}"], timeout_s=_TIMEOUT_S, max_output_chars=2_000_000)
        if done.timed_out:
            info = Missing(reason=f"docker info did not answer within {_TIMEOUT_S:g} s")
        else:
            info = engine_info.parse(done.stdout)
    version: str | Missing | None = info.client_version if isinstance(info, Info) else None
    if version is None:
        done = runner.run([program, "--version"], timeout_s=_TIMEOUT_S)
        if re.match(r"podman\b", done.stdout, re.IGNORECASE) or "Emulate Docker CLI using podman" in done.stderr:
            return None
        version = engine_info.version_in(done.stdout)
    return engine(
        program,
        version,
        info,
        endpoint,
        daemon=daemon if not isinstance(info, Info) or info.daemon is None else info.daemon,
        daemon_installed=_dockerd(root, environment),
        root=root,
        names=names,
    )


def _dockerd(root: Path, environment: Mapping[str, str]) -> bool:
    units = ("usr/lib/systemd/system", "lib/systemd/system", "etc/systemd/system")
    return (
        shutil.which("dockerd", path=environment.get("PATH")) is not None
        or any(is_there(root / folder / "docker.service") for folder in units)
        or is_there(root / "var/snap/docker")
        or is_there(root / "opt/docker-desktop")
    )


def engine(
    program: str,
    version: str | Missing,
    info: Info | Missing | None,
    endpoint: Endpoint | None,
    *,
    daemon: Daemon | Missing | None,
    daemon_installed: bool,
    root: Path,
    names: frozenset[str],
) -> Engine:
    """Put together what is known of an engine.

    Args:
        program: Its command.
        version: Of that command.
        info: What the engine says of itself; None where it was not asked.
        endpoint: What the command talks to; None for Podman.
        daemon: How it is with the daemon.
        daemon_installed: Whether the daemon is on this machine.
        root: The folder that stands for ``/``.
        names: The user's names, which are folded.
    """
    real = os.path.realpath(program)
    about = info if isinstance(info, Info) else None
    gone: Missing | None = info if isinstance(info, Missing) else None
    storage: str | Missing | None = gone if about is None else about.storage
    free: int | Missing | None = gone
    if about is not None:
        free = _free_bytes(root, about)
    # A program of a snap is a link to snap itself.
    snap = real.startswith("/snap/") or program.startswith("/snap/") or os.path.basename(real) == "snap"  # noqa: PTH119
    return Engine(
        path=fold_person(program, names),
        version=version,
        server=about.server if about is not None else None,
        daemon=daemon,
        daemon_installed=daemon_installed,
        daemon_version=about.version if about is not None else gone,
        context=None if endpoint is None else endpoint.context,
        rootless=about.rootless if about is not None else gone,
        desktop=about.desktop if about is not None else gone,
        snap=snap or (isinstance(storage, str) and storage.startswith("/var/snap/")),
        cgroup_driver=about.cgroup_driver if about is not None else gone,
        cgroup_version=about.cgroup_version if about is not None else gone,
        runtimes=about.runtimes if about is not None else gone,
        default_runtime=about.default_runtime if about is not None else gone,
        cdi_spec_dirs=about.cdi_spec_dirs if about is not None else gone,
        storage=fold_person(storage, names) if isinstance(storage, str) else storage,
        storage_free_bytes=free,
    )


def _free_bytes(root: Path, info: Info) -> int | Missing | None:
    if isinstance(info.storage, Missing):
        return info.storage
    if info.desktop is True:
        return None  # inside a virtual machine
    try:
        about = os.statvfs(root / info.storage.lstrip("/"))
    except FileNotFoundError:
        return None  # the daemon's folder is not of this machine, or of this container
    except (OSError, ValueError) as error:
        return Missing(reason=f"statvfs on the engine's storage: {getattr(error, 'strerror', None) or 'no path'}")
    return about.f_bavail * about.f_frsize


def gather_podman(root: Path, environment: Mapping[str, str]) -> Engine | Missing | None:
    """Return Podman; None where there is none."""
    program = shutil.which("podman", path=environment.get("PATH"))
    if program is None:
        return None
    own = places.home() / ".local/share/containers/storage"
    storage = root / "var/lib/containers/storage" if os.geteuid() == 0 else own
    info: Info | Missing | None = None
    if is_there(storage):  # else the question would make one
        done = runner.run([program, "info", "--format", "json"], timeout_s=_TIMEOUT_S, max_output_chars=2_000_000)
        info = engine_info.parse(done.stdout)
        if done.timed_out:
            info = Missing(reason=f"podman info did not answer within {_TIMEOUT_S:g} s")
    version: str | Missing | None = info.version if isinstance(info, Info) else None
    if version is None or isinstance(version, Missing):
        version = engine_info.version_in(runner.run([program, "--version"], timeout_s=_TIMEOUT_S).stdout)
    return engine(program, version, info, None, daemon=None, daemon_installed=True, root=root, names=names_of_user())


def read_dev_char(root: Path) -> bool | None:
    """Return whether systemd can find NVIDIA's devices by their numbers; None where there are none of these.

    NVIDIA's character devices have the major number 195 (Linux' devices.txt).
    """
    if not any(re.fullmatch(r"nvidia\d+", name) for name in names_in(root / "dev")):
        return None
    return any(name.startswith("195:") for name in names_in(root / "dev/char"))
