"""What ``docker info`` and ``podman info`` print as JSON, read with nothing taken for granted.

Their host names, addresses of mirrors and labels are not looked at.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import Daemon


class Info(NamedTuple):
    """What an engine says of itself; names as in ``facts.engines.Engine``. ``daemon``: None where it answered."""

    server: str
    daemon: Daemon | Missing | None
    client_version: str | None
    version: str | Missing
    rootless: bool | Missing
    desktop: bool | Missing
    cgroup_driver: str | Missing
    cgroup_version: int | Missing
    runtimes: tuple[str, ...] | Missing
    default_runtime: str | Missing
    cdi_spec_dirs: tuple[str, ...] | Missing
    storage: str | Missing


def version_in(text: str) -> str | Missing:
    """Return the version in a line such as ``Docker version 28.2.2, build e6534b4``."""
    match = re.search(r"\b(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)", text[:2000], re.ASCII)
    return match[1] if match else Missing(reason="it does not say a version")


def parse(text: str) -> Info | Missing:
    """Return what an engine says of itself."""
    start = text.find("{")
    try:
        # Warnings may come before and after it.
        document, _ = json.JSONDecoder().raw_decode(text[start:] if start > 0 else text)
    except (ValueError, RecursionError):
        return Missing(reason="the engine's info is not JSON")
    if not isinstance(document, dict):
        return Missing(reason="the engine's info is not an object")
    return _podman(document) if isinstance(document.get("host"), dict) else _docker(document)


def _docker(document: dict[str, Any]) -> Info | Missing:
    client = document.get("ClientInfo")
    client_version = version_in(str(client.get("Version"))) if isinstance(client, dict) else None
    known_client = client_version if isinstance(client_version, str) else None
    version = _text(document, "ServerVersion")
    errors = _texts(document.get("ServerErrors"))
    if isinstance(version, Missing):
        return _unanswered(" ".join(errors).lower(), known_client)
    storage = _text(document, "DockerRootDir")
    options = document.get("SecurityOptions")
    system = document.get("OperatingSystem")
    dirs = document.get("CDISpecDirs")
    cgroup = str(document.get("CgroupVersion") or "1")  # daemons before 20.10 know version 1 only and do not say so
    return Info(
        server="podman" if isinstance(storage, str) and storage.endswith("containers/storage") else "docker",
        daemon=None,
        client_version=known_client,
        version=version,
        rootless=any("rootless" in option for option in _texts(options))
        if options is None or isinstance(options, list)
        else Missing(reason="docker info has no SecurityOptions"),
        desktop="docker desktop" in system.lower()
        if isinstance(system, str)
        else Missing(reason="docker info has no OperatingSystem"),
        cgroup_driver=_text(document, "CgroupDriver"),
        cgroup_version=int(cgroup) if cgroup in ("1", "2") else Missing(reason="docker info has no CgroupVersion"),
        runtimes=_names(document.get("Runtimes"), "docker info has no Runtimes"),
        default_runtime=_text(document, "DefaultRuntime"),
        # Daemons before 25 do not know CDI; one with CDI off has null.
        cdi_spec_dirs=tuple(_texts(dirs)[:20]),
        storage=storage,
    )


def _unanswered(errors: str, client_version: str | None) -> Info:
    reason = Missing(reason="docker info has no answer of a daemon")
    daemon: Daemon | Missing = reason
    if "permission denied" in errors:
        daemon = "permission-denied"
    elif "is the docker daemon running" in errors:
        daemon = "not-running"
    return Info(
        "docker", daemon, client_version, reason, reason, reason, reason, reason, reason, reason, reason, reason
    )


def _podman(document: dict[str, Any]) -> Info:
    host = document["host"]
    security, runtime = host.get("security"), host.get("ociRuntime")
    store, about = document.get("store"), document.get("version")
    cgroup = host.get("cgroupVersion")
    name = _text(runtime, "name")
    return Info(
        server="podman",
        daemon=None,
        client_version=None,
        version=version_in(str(about.get("Version")))
        if isinstance(about, dict)
        else Missing(reason="it has no version"),
        rootless=security["rootless"]
        if isinstance(security, dict) and isinstance(security.get("rootless"), bool)
        else Missing(reason="podman info has no host.security.rootless"),
        desktop=False,
        cgroup_driver=_text(host, "cgroupManager"),
        cgroup_version=int(cgroup[1:])
        if cgroup in ("v1", "v2")
        else Missing(reason="podman info has no host.cgroupVersion"),
        runtimes=name if isinstance(name, Missing) else (name,),
        default_runtime=name,
        cdi_spec_dirs=Missing(reason="podman info does not tell it"),
        storage=_text(store, "graphRoot"),
    )


def _text(document: object, key: str) -> str | Missing:
    value = document.get(key) if isinstance(document, dict) else None
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()[:200]
    return Missing(reason=f"the engine's info has no {key}")


def _texts(values: object) -> list[str]:
    return [value[:200] for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _names(value: object, reason: str) -> tuple[str, ...] | Missing:
    if not isinstance(value, dict):
        return Missing(reason=reason)
    return tuple(sorted(name[:100] for name in value))[:50]
