"""The network as NCCL and downloads see it. No address, no host name, no credential is in it."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Interface(Fact, frozen=True, kw_only=True):
    """A network interface.

    Args:
        name: As the kernel names it; a hardware address in it is folded to ``…``.
        kind: ``loopback``, ``ethernet``, ``infiniband``, ``wireless``, ``bridge``, ``container`` (the host's side of
            a container network: docker0, veth…, cni0, virbr0), ``tunnel`` or ``other``.
        up: Whether it is switched on and has a carrier.
        virtual: Whether no hardware is behind it; so is every interface inside a container.
        has_address: Whether it has an IP address that is more than link-local.
    """

    name: str
    kind: str
    up: bool
    virtual: bool
    has_address: bool | Missing


class Proxy(Fact, frozen=True, kw_only=True):
    """A proxy variable that is set.

    Args:
        variable: Its name in small letters: ``http_proxy``, ``https_proxy``, ``all_proxy``, ``no_proxy``.
        scheme: How the proxy is spoken to: ``http``, ``https``, ``socks5``…; None where the value names none.
    """

    variable: str
    scheme: str | None


class Ifname(Fact, frozen=True, kw_only=True):
    """Which interfaces NCCL is told to use.

    Args:
        value: The value of NCCL_SOCKET_IFNAME: names or beginnings of names, ``^`` before them for all others, ``=``
            for exact names.
        source: Where it is set: ``environment``, ``~/.nccl.conf`` or ``/etc/nccl.conf``.
    """

    value: str
    source: str


class Network(Fact, frozen=True, kw_only=True):
    """The network.

    Args:
        interfaces: In the kernel's order, in which NCCL tries them.
        nccl_ifname: What NCCL is told; None if nothing.
        infiniband: Link layers of the active ports of RDMA adapters: ``InfiniBand`` or ``Ethernet`` (RoCE).
        num_uverbs: Device files ``/dev/infiniband/uverbs*``, without which an adapter cannot be used from here.
        proxies: The proxy variables that are set.
    """

    interfaces: tuple[Interface, ...] | Missing
    nccl_ifname: Ifname | Missing | None
    infiniband: tuple[str, ...] | Missing
    num_uverbs: int
    proxies: tuple[Proxy, ...]
