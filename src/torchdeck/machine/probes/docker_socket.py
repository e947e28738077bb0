"""Which daemon Docker's command talks to, and whether it answers: by Docker's own order of variables and files.

A socket that systemd listens on is left alone while no daemon stands behind it, for a connection would start one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import Daemon
from torchdeck.machine.probes.files import is_there, read_text

_TIMEOUT_S = 1.0
# What is there while a daemon of the machine runs: its process id, or its control group.
_RUNNING = (
    "run/docker.pid",
    "run/snap.docker/docker.pid",
    "sys/fs/cgroup/system.slice/docker.service",
    "sys/fs/cgroup/systemd/system.slice/docker.service",
    "sys/fs/cgroup/system.slice/snap.docker.dockerd.service",
    "sys/fs/cgroup/system.slice/podman.service",
)


class Endpoint(NamedTuple):
    """What Docker's command talks to: the kind of context, and a socket of this machine (None for another's)."""

    context: str | Missing
    socket: str | None


def find_endpoint(environment: Mapping[str, str], home: Path) -> Endpoint:
    """Return what Docker's command talks to: DOCKER_HOST, else DOCKER_CONTEXT, else the chosen context."""
    config = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    host = environment.get("DOCKER_HOST", "")
    name = environment.get("DOCKER_CONTEXT", "")
    if host and not name:
        return _of_host(host, environment)
    name = name or str(_json(config / "config.json").get("currentContext") or "default")
    if name == "default":
        return Endpoint("default", "/var/run/docker.sock")
    meta = config / "contexts/meta" / hashlib.sha256(name.encode("utf-8", "replace")).hexdigest() / "meta.json"
    endpoints = _json(meta).get("Endpoints")
    docker = endpoints.get("docker") if isinstance(endpoints, dict) else None
    address = docker.get("Host") if isinstance(docker, dict) else None
    if not isinstance(address, str):
        return Endpoint(Missing(reason="the chosen Docker context cannot be read"), None)
    return _of_host(address, environment)


def _of_host(host: str, environment: Mapping[str, str]) -> Endpoint:
    if not host.startswith("unix://"):
        return Endpoint("remote", None)
    path = host.removeprefix("unix://")
    if "/.docker/desktop/" in path or "/docker-desktop/" in path:
        return Endpoint("desktop", path)
    if path in ("/var/run/docker.sock", "/run/docker.sock"):
        return Endpoint("default", path)
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return Endpoint("rootless" if path == f"{runtime}/docker.sock" else "other", path)


def _json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_text(file, 1_000_000) or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def state_of(endpoint: Endpoint, root: Path) -> Daemon | Missing:
    """Return whether the daemon answers, without starting it."""
    if endpoint.socket is None:
        return endpoint.context if isinstance(endpoint.context, Missing) else "remote"
    path = root / endpoint.socket.lstrip("/")
    systemd = endpoint.context == "default" and is_there(root / "run/systemd/system")
    if systemd and is_there(path) and not any(is_there(root / sign) for sign in _RUNNING):
        return "asleep"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(_TIMEOUT_S)
            asked.connect(str(path))
    except PermissionError:
        return "permission-denied"
    except TimeoutError:
        return Missing(reason=f"Docker's socket did not accept a connection within {_TIMEOUT_S:g} s")
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
            return "not-running"
        return Missing(reason=f"Docker's socket: {getattr(error, 'strerror', None) or 'no path of a socket'}")
    return "reachable"
