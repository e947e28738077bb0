"""Interfaces, RDMA adapters, what NCCL is told, and which proxies are set: from /sys, /proc and the environment.

No address is read further than "there is one", and of a proxy no more than how it is spoken to.
"""

from __future__ import annotations

import array
import fcntl
import os
import re
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from torchdeck import places
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.network import Ifname, Interface, Network, Proxy
from torchdeck.machine.probes.files import is_there, names_in, read_number, read_text

ROOT = Path("/")
_MAX_INTERFACES = 500  # a node full of pods has hundreds
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
# The host's side of container and virtual machine networks, by the names that the programs give.
_CONTAINER = re.compile(
    r"(docker|veth|cni|flannel|cali|cilium|lxc|lxd|virbr|podman|vnet|kube-|nodelocal|antrea|weave|ovs|br-[0-9a-f]{12}$)"
)
_SIOCGIFCONF = 0x8912  # linux/sockios.h
_IFREQ_BYTES = 40  # struct ifreq on 64-bit Linux
_LINK_LOCAL = 0x20  # in the scope column of /proc/net/if_inet6


def gather_network(root: Path = ROOT, environment: Mapping[str, str] | None = None) -> Network:
    """Return the network."""
    environment = os.environ if environment is None else environment
    return Network(
        interfaces=read_interfaces(root, _with_ipv4),
        nccl_ifname=read_ifname(root, environment, places.home()),
        infiniband=read_infiniband(root),
        num_uverbs=sum(name.startswith("uverbs") for name in names_in(root / "dev/infiniband")),
        proxies=read_proxies(environment),
    )


def read_interfaces(root: Path, with_ipv4: Callable[[], frozenset[str] | Missing]) -> tuple[Interface, ...] | Missing:
    """Return the interfaces.

    Args:
        root: The folder that stands for ``/``.
        with_ipv4: Gives the names of those that have an IPv4 address.
    """
    folder = root / "sys/class/net"
    if not is_there(folder):
        return Missing(reason="there is no /sys/class/net")
    ipv4, ipv6 = with_ipv4(), _with_ipv6(root)
    found = []
    for name in names_in(folder)[:_MAX_INTERFACES]:
        device = folder / name
        kind = _kind(device, name)
        if kind is None:
            continue
        state = (read_text(device / "operstate", 50) or "").strip()
        # A loopback and many a tunnel never know; carrier tells it, and cannot be read while switched off.
        up = state == "up" or (state == "unknown" and (read_number(device / "carrier") or 0) == 1)
        addressed: bool | Missing = True if name in ipv6 else ipv4 if isinstance(ipv4, Missing) else name in ipv4
        index = read_number(device / "ifindex") or 0
        virtual = not is_there(device / "device")
        found.append((index, Interface(name=fold_mac(name), kind=kind, up=up, virtual=virtual, has_address=addressed)))
    return tuple(interface for _, interface in sorted(found, key=lambda pair: pair[0]))


def _kind(device: Path, name: str) -> str | None:
    """Return what an interface is; None where it is none (``bonding_masters`` is a file among them)."""
    kind = read_number(device / "type")
    if kind is None:
        return None
    if _CONTAINER.match(name):
        return "container"
    if is_there(device / "bridge"):
        return "bridge"
    if is_there(device / "wireless") or is_there(device / "phy80211"):
        return "wireless"
    if is_there(device / "tun_flags"):
        return "tunnel"
    # linux/if_arp.h: 772 loopback, 1 Ethernet, 32 InfiniBand, 65534 none, 768 to 778 tunnels of several sorts.
    known = {772: "loopback", 1: "ethernet", 32: "infiniband", 65534: "tunnel", 768: "tunnel", 776: "tunnel"}
    return known.get(kind, "other")


def fold_mac(name: str) -> str:
    """Return an interface's name without the hardware address that udev puts into some."""
    return re.sub(r"^(en|wl|ww|ib)x[0-9a-f]{12}", r"\1x…", name)


def _with_ipv6(root: Path) -> frozenset[str]:
    """Return the interfaces with an IPv6 address that reaches further than the link."""
    names = set()
    for line in (read_text(root / "proc/net/if_inet6") or "").splitlines():
        words = line.split()
        if len(words) == 6 and re.fullmatch(r"[0-9a-f]{2}", words[3]) and int(words[3], 16) != _LINK_LOCAL:
            names.add(words[5])
    return frozenset(names)


def _with_ipv4() -> frozenset[str] | Missing:
    """Ask the kernel for all interfaces that have an IPv4 address (SIOCGIFCONF of netdevice(7))."""
    room = array.array("B", bytes(_IFREQ_BYTES * _MAX_INTERFACES))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            request = struct.pack("iL", len(room), room.buffer_info()[0])
            answer = fcntl.ioctl(asked.fileno(), _SIOCGIFCONF, request)
    except OSError as error:
        return Missing(reason=f"the kernel does not list IPv4 addresses: {error.strerror}")
    size = struct.unpack("iL", answer)[0]
    data = room.tobytes()
    names = (data[start : start + 16].split(b"\0", 1)[0] for start in range(0, size, _IFREQ_BYTES))
    return frozenset(name.decode("utf-8", "replace") for name in names)


def read_ifname(root: Path, environment: Mapping[str, str], home: Path) -> Ifname | Missing | None:
    """Return which interfaces NCCL is told to use: the variable, else the user's file, else the machine's."""
    places_of_it = [
        (environment.get("NCCL_SOCKET_IFNAME"), "environment"),
        (_of_file(home / ".nccl.conf"), "~/.nccl.conf"),
        (_of_file(root / "etc/nccl.conf"), "/etc/nccl.conf"),
    ]
    value, source = next(((value, source) for value, source in places_of_it if value is not None), (None, ""))
    if not value or not value.strip():
        return None
    if not re.fullmatch(r"[\^=]?[A-Za-z0-9_.:@,=-]{1,300}", value.strip(), re.ASCII):
        return Missing(reason=f"NCCL_SOCKET_IFNAME of {source} is no list of interfaces")
    # The beginning of a hardware address is one, too.
    folded = re.sub(r"(^|[,^=])(en|wl|ww|ib)x[0-9a-f]{2,12}", r"\1\2x…", value.strip())
    return Ifname(value=folded, source=source)


def _of_file(file: Path) -> str | None:
    for line in (read_text(file, 100_000) or "").splitlines():
        name, sign, value = line.partition("=")
        if sign and name.strip() == "NCCL_SOCKET_IFNAME":
            return value.strip()
    return None


def read_infiniband(root: Path) -> tuple[str, ...]:
    """Return the link layers of the active ports of RDMA adapters."""
    layers = []
    folder = root / "sys/class/infiniband"
    for adapter in names_in(folder)[:64]:
        for port in names_in(folder / adapter / "ports")[:8]:
            state = read_text(folder / adapter / "ports" / port / "state", 50) or ""
            layer = (read_text(folder / adapter / "ports" / port / "link_layer", 50) or "").strip()
            if "ACTIVE" in state and layer in ("InfiniBand", "Ethernet"):
                layers.append(layer)
    return tuple(layers)


def read_proxies(environment: Mapping[str, str]) -> tuple[Proxy, ...]:
    """Return the proxy variables that are set, in small letters or capitals: never more of a value than its scheme."""
    found = []
    for variable in _PROXIES:
        value = environment.get(variable) or environment.get(variable.upper())
        if value:
            scheme, sign, _ = value.strip().partition("://")
            known = sign and scheme.lower() in _SCHEMES and variable != "no_proxy"
            found.append(Proxy(variable=variable, scheme=scheme.lower() if known else None))
    return tuple(found)
