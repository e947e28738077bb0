"""Rules on compose files: the GPU request, shared memory, ports, Jupyter, keys of former versions.

It knows one file: what an override or ``extends`` adds is not seen, and a service that extends another is not judged
for what it lacks. Variables are taken at their default.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdeck.machine.files.container import computes, no_gpu, small_shm, trains
from torchdeck.machine.files.docker_image import capabilities_hits
from torchdeck.machine.files.hit import Hit, hit
from torchdeck.machine.files.images import looks_gpu, looks_torch
from torchdeck.machine.files.lab import empty_token, token_hit
from torchdeck.machine.files.yaml_nodes import entries, get, items, kind_of_node, line_of, read_yaml, scalar, texts

if TYPE_CHECKING:
    from yaml.nodes import Node

_DEFAULT = re.compile(r"\$\{\w+:?-([^${}]*)\}")
_OFF = ("", "none", "void", "-1")
_GPU_MEND = ("gpus: all", "deploy.resources.reservations.devices: [{driver: nvidia, count: all, capabilities: [gpu]}]")
_SHM_MEND = ("shm_size: 8gb", "ipc: host")
_MAX_SERVICES = 200


def judge_compose(text: str) -> list[Hit]:
    """Judge every service.

    Raises:
        UsageError: It is not YAML.
    """
    root = read_yaml(text)
    hits: list[Hit] = []
    if version := entries(root).get("version"):
        hits.append(
            hit(
                version[0],
                "compose-version-ignored",
                "info",
                "the key version says nothing any more",
                cause="Compose ignores it, and prints a warning at each call.",
                needs="no such key",
                mend="remove the line",
            )
        )
    for name, (line, service) in list(entries(get(root, "services")).items())[:_MAX_SERVICES]:
        hits += _Service(name, line, service).judge()
    return hits


class _Service:
    def __init__(self, name: str, line: int, node: Node) -> None:
        self.name = name
        self.line = line
        self.keys = entries(node)
        self.node = node
        self.image = _DEFAULT.sub(r"\1", scalar(self._value("image")))
        parts = [text for key in ("entrypoint", "command") for _, text in texts(self._value(key))]
        self.command = " ".join(parts)
        self.environment = self._environment()

    def _value(self, key: str) -> Node | None:
        return self.keys[key][1] if key in self.keys else None

    def _at(self, key: str) -> int:
        return self.keys[key][0] if key in self.keys else self.line

    def _environment(self) -> dict[str, tuple[int, str]]:
        node = self._value("environment")
        found = {name: (line, scalar(value)) for name, (line, value) in entries(node).items()}
        for line, text in texts(node):
            name, _, value = text.partition("=")
            found[name] = (line, value)
        return found

    def judge(self) -> list[Hit]:
        hits = [*self._reservations(), *self._legacy(), *self._ports(), *self._jupyter(), *self._capabilities()]
        if "extends" not in self.keys:
            hits += [*self._request(), *self._shm()]
        return hits

    @property
    def devices(self) -> list[Node]:
        return items(get(self.node, "deploy", "resources", "reservations", "devices"))

    @property
    def requests_gpu(self) -> bool:
        cdi = any("nvidia.com/gpu" in text or "/dev/nvidia" in text for _, text in texts(self._value("devices")))
        return bool(self.devices) or "gpus" in self.keys or cdi or scalar(self._value("runtime")) == "nvidia"

    def _request(self) -> list[Hit]:
        visible = [self.environment[name][1] for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
                   if name in self.environment]  # fmt: skip
        if self.requests_gpu or any(value.strip().lower() in _OFF for value in visible):
            return []
        named = self.image if looks_gpu(self.image) else ""
        command = self.command if computes(self.command) and not re.search(r"\bcpu\b", self.image) else ""
        why = (
            f"image {named}"
            if named
            else ("its command is for a GPU" if command else ("its environment chooses GPUs" if visible else ""))
        )
        if not why:
            return []
        line = self._at("image" if named else "command" if command else "environment")
        return [no_gpu(line, f"the service {self.name} is made for GPUs and requests none", why, _GPU_MEND)]

    def _reservations(self) -> list[Hit]:
        hits = []
        for device in self.devices:
            keys = entries(device)
            driver = scalar(keys["driver"][1]) if "driver" in keys else ""
            if driver not in ("", "nvidia"):
                continue
            names = [text for _, text in texts(keys["capabilities"][1])] if "capabilities" in keys else []
            listed = "capabilities" in keys and kind_of_node(keys["capabilities"][1]) == "sequence"
            if not listed or not names:
                hits.append(
                    self._invalid(line_of(device), "has no list of capabilities", "capabilities: [gpu]", "error")
                )
            elif not {"gpu", "nvidia"} & set(names):
                line = keys["capabilities"][0]
                hits.append(self._invalid(line, "leaves gpu out of its capabilities", "capabilities: [gpu]", "warning"))
            if "count" in keys and "device_ids" in keys:
                hits.append(self._invalid(keys["count"][0], "has both count and device_ids", "count: all", "error"))
        return hits

    def _invalid(self, line: int, what: str, mend: str, severity: str) -> Hit:
        return hit(
            line,
            "compose-gpu-reservation-invalid",
            "error" if severity == "error" else "warning",
            f"the GPU reservation of {self.name} {what}",
            cause="Compose needs a list of capabilities to choose the driver by, and count or device_ids, not both.",
            needs=mend,
            mend=mend,
        )

    def _legacy(self) -> list[Hit]:
        if scalar(self._value("runtime")) != "nvidia":
            return []
        return [
            hit(
                self._at("runtime"),
                "compose-runtime-legacy",
                "info",
                f"{self.name} uses runtime: nvidia, the form before GPU requests",
                cause="It works only where that runtime is registered with the daemon; a request works everywhere.",
                needs="a GPU request",
                mend=_GPU_MEND,
            )
        ]

    def _shm(self) -> list[Hit]:
        about_torch = (looks_torch(self.image) and looks_gpu(self.image)) or trains(self.command)
        if not about_torch or "ipc" in self.keys or self._mounts_shm():
            return []
        size = scalar(self._value("shm_size"))
        return [] if "$" in size else small_shm(self._at("shm_size"), size, _SHM_MEND)

    def _mounts_shm(self) -> bool:
        short = [text for key in ("tmpfs", "volumes") for _, text in texts(self._value(key))]
        long = [scalar(get(node, "target")) for node in items(self._value("volumes"))]
        return any("/dev/shm" in text for text in (*short, *long))  # noqa: S108

    def _ports(self) -> list[Hit]:
        hits = []
        for node in items(self._value("ports")):
            if kind_of_node(node) == "mapping":
                target, host = scalar(get(node, "target")), scalar(get(node, "host_ip"))
                open_to_all = target == "8888" and host in ("", "0.0.0.0", "::")  # noqa: S104
            else:
                open_to_all = _published_everywhere(_DEFAULT.sub(r"\1", scalar(node)))
            if open_to_all:
                hits.append(
                    hit(
                        line_of(node),
                        "port-published-everywhere",
                        "warning",
                        f"{self.name} publishes Jupyter's port 8888 on every address of the host",
                        cause="Docker opens it past the host's firewall: the whole network reaches it.",
                        needs="an address of this host only, and an SSH tunnel from elsewhere",
                        mend='"127.0.0.1:8888:8888"',
                    )
                )
        return hits

    def _jupyter(self) -> list[Hit]:
        lines = [*texts(self._value("entrypoint")), *texts(self._value("command"))]
        setting = empty_token("\n".join(text for _, text in lines))
        if not setting:
            return []
        line = next((line for line, text in lines if setting in text), self.line)
        return [token_hit(line, setting)]

    def _capabilities(self) -> list[Hit]:
        line, value = self.environment.get("NVIDIA_DRIVER_CAPABILITIES", (0, ""))
        return capabilities_hits(value, line)


def _published_everywhere(text: str) -> bool:
    """Whether a short port syntax publishes the container's port 8888 on all addresses."""
    match = re.fullmatch(r"(?:(?P<host>\[[0-9a-f:]*\]|[^:\[\]]*):)?(?:(?P<port>[\d-]*):)?8888(?:/tcp)?", text.strip())
    if match is None:
        return False
    host = match["host"] or ""
    return match["port"] is None or host in ("", "0.0.0.0", "[::]")  # noqa: S104
