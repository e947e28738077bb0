"""The interfaces of NCCL: does what it is told name one, and one that other machines can reach.

What it does not know: which networks the other machines are on, and their firewalls.
"""

from __future__ import annotations

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.network import Ifname, Interface, Network
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.judge.present import driver_of, num_machines
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

_NONE, _WRONG = "nccl-no-usable-interface", "nccl-wrong-interface"


def judge_network(
    network: Network | Missing | None, nvidia: Nvidia | Missing, surroundings: Surroundings | Missing | None
) -> list[Finding]:
    """Find an interface setting of NCCL that matches nothing, or nothing that leaves this machine.

    Args:
        network: The network; None where it was not gathered.
        nvidia: Without a driver nothing uses NCCL, and nothing is found.
        surroundings: A job on several machines makes of a hint a warning.
    """
    if network is None or driver_of(nvidia) is None:
        return []
    if isinstance(network, Missing):
        return [unknown(_NONE, "which network interfaces there are", network)]
    if isinstance(network.interfaces, Missing):
        return [unknown(_NONE, "which network interfaces there are", network.interfaces)]
    if isinstance(network.nccl_ifname, Missing):
        return [unknown(_NONE, "which interfaces NCCL is told to use", network.nccl_ifname)]
    several = num_machines(surroundings) > 1
    if network.nccl_ifname is None:
        return _by_itself(network.interfaces, several)
    return _told(network.interfaces, network.nccl_ifname, several)


def matches(value: str, name: str) -> bool:
    """Return whether NCCL takes an interface, by the rules of its documentation.

    Args:
        value: Of NCCL_SOCKET_IFNAME: beginnings of names, ``=`` before them for exact names, ``^`` for all others.
        name: An interface.
    """
    inverted = value.startswith("^")
    value = value.removeprefix("^")
    exact = value.startswith("=")
    wanted = [part.partition(":")[0] for part in value.removeprefix("=").split(",") if part]
    found = any(name == part if exact else name.startswith(part) for part in wanted)
    return found != inverted


def _usable(interface: Interface) -> bool:
    return interface.up and interface.has_address is not False


def _list(interfaces: tuple[Interface, ...]) -> str:
    shown = [
        f"{interface.name} ({interface.kind}{'' if interface.up else ', down'}"
        f"{', no address' if interface.has_address is False else ''})"
        for interface in interfaces[:12]
    ]
    return ", ".join(shown) + (", …" if len(interfaces) > 12 else "") if shown else "none"


def _best(interfaces: tuple[Interface, ...]) -> str:
    """Return the interface that most probably reaches other machines."""
    order = ("infiniband", "ethernet", "bridge", "wireless", "other", "tunnel", "loopback", "container")
    fit = [interface for interface in interfaces if _usable(interface)]
    fit.sort(key=lambda one: (order.index(one.kind) if one.kind in order else len(order), one.virtual))
    return fit[0].name if fit else "lo"


def _mend(interfaces: tuple[Interface, ...], ifname: Ifname | None) -> tuple[str, ...]:
    best = _best(interfaces)
    choose = f"export NCCL_SOCKET_IFNAME={best}" if "…" not in best and best.isascii() else "ip -brief address"
    if ifname is None or ifname.source == "environment":
        return (choose, *(("unset NCCL_SOCKET_IFNAME",) if ifname else ()))
    return (f"correct NCCL_SOCKET_IFNAME in {ifname.source}", choose)


def _told(interfaces: tuple[Interface, ...], ifname: Ifname, several: bool) -> list[Finding]:
    taken = tuple(interface for interface in interfaces if matches(ifname.value, interface.name))
    usable = [interface for interface in taken if _usable(interface)]
    evidence = (
        f"NCCL_SOCKET_IFNAME={ifname.value}, from {ifname.source}",
        f"interfaces in /sys/class/net: {_list(interfaces)}",
    )
    if not usable:
        what = "no interface of this machine" if not taken else f"only what is down or has no address: {_list(taken)}"
        return [
            Finding(
                rule=_NONE,
                severity="warning",
                title=f"NCCL_SOCKET_IFNAME={ifname.value} matches {what}",
                cause="NCCL starts over a network interface, on a single machine too, and fails where none is left.",
                evidence=evidence,
                needs="the name of an interface that is up and has an address",
                mend=_mend(interfaces, ifname),
            )
        ]
    doubtful = [interface for interface in usable if isinstance(interface.has_address, Missing)]
    if len(doubtful) == len(usable) and isinstance(doubtful[0].has_address, Missing):
        return [unknown(_NONE, f"whether {doubtful[0].name} has an address", doubtful[0].has_address)]
    if any(interface.kind not in ("loopback", "container") for interface in usable):
        return []
    return [
        Finding(
            rule=_WRONG,
            severity="warning" if several else "info",
            title=f"NCCL_SOCKET_IFNAME={ifname.value} takes {usable[0].name}, which other machines cannot reach",
            cause="Within one machine this works; a job on several hangs or loses its connections.",
            evidence=evidence,
            needs="the interface by which the machines of a job reach each other",
            mend=_mend(interfaces, ifname),
        )
    ]


def _by_itself(interfaces: tuple[Interface, ...], several: bool) -> list[Finding]:
    """Judge NCCL's own choice: names with ib first, then all but Docker's and loopback, then these."""
    usable = tuple(interface for interface in interfaces if _usable(interface))
    evidence = (f"interfaces in /sys/class/net: {_list(interfaces)}", "NCCL_SOCKET_IFNAME is not set")
    if not usable:
        return [
            Finding(
                rule=_NONE,
                severity="warning",
                title="no network interface is up, not even loopback: NCCL cannot start",
                cause="NCCL starts over a network interface, on a single machine too.",
                evidence=evidence,
                needs="at least the interface lo",
                mend=("sudo ip link set lo up", "docker run --network=host …"),
            )
        ]
    rest = [one for one in usable if not one.name.startswith(("docker", "lo", "virbr"))]
    order = [one for one in usable if one.name.startswith("ib")] or rest
    better = any(one.kind in ("ethernet", "infiniband") and not one.virtual for one in usable)
    if not several or not order or order[0].kind != "container" or not better:
        return []
    return [
        Finding(
            rule=_WRONG,
            severity="warning",
            title=f"NCCL will take {order[0].name} first, which other machines cannot reach",
            cause="It tries the interfaces in the kernel's order, and leaves out only loopback and Docker's bridge.",
            evidence=evidence,
            needs="NCCL_SOCKET_IFNAME with the interface by which the machines of this job reach each other",
            mend=_mend(interfaces, None),
        )
    ]
