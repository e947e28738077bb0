"""Interfaces, what NCCL is told, RDMA adapters, and proxies without their secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed
from machine_parts import interface, network, nvidia, slurm, surroundings

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.network import Ifname, Network
from torchdeck.machine.judge.network import judge_network, matches
from torchdeck.machine.probes.network import (
    fold_mac,
    gather_network,
    read_ifname,
    read_infiniband,
    read_interfaces,
    read_proxies,
)
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")


def _net(
    root: Path, name: str, kind: str = "1", state: str = "up", index: int = 1, parts: tuple[str, ...] = ()
) -> None:
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    (folder / "type").write_text(kind + "\n")
    (folder / "operstate").write_text(state + "\n")
    (folder / "ifindex").write_text(f"{index}\n")
    for part in parts:
        (folder / part).mkdir()


def told(value: str | None, source: str = "environment", **changes: Any) -> Network:
    return network(nccl_ifname=None if value is None else Ifname(value=value, source=source), **changes)


def judged(facts: Any, where: Any = None) -> list[Finding]:
    return judge_network(facts, nvidia(), where or surroundings())


def test_interfaces_are_read_in_the_kernels_order_and_by_kind(tmp_path: Path) -> None:
    _net(tmp_path, "eno1", index=2, parts=("device",))
    _net(tmp_path, "lo", kind="772", state="unknown", index=1)
    (tmp_path / "sys/class/net/lo/carrier").write_text("1\n")
    _net(tmp_path, "docker0", state="down", index=9, parts=("bridge",))
    _net(tmp_path, "br0", index=4, parts=("bridge",))
    _net(tmp_path, "ib0", kind="32", index=5, parts=("device",))
    _net(tmp_path, "wlp3s0", index=6, parts=("device", "wireless"))
    (tmp_path / "sys/class/net/bonding_masters").write_text("\n")
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/if_inet6").write_text(
        "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000000000000000000000001 02 40 00 80     eno1\n"
        "fe800000000000000000000000000001 05 40 20 80      ib0\n"
    )
    found = read_interfaces(tmp_path, lambda: frozenset({"br0"}))
    assert not isinstance(found, Missing)
    assert [(one.name, one.kind, one.up, one.virtual, one.has_address) for one in found] == [
        ("lo", "loopback", True, True, True),
        ("eno1", "ethernet", True, False, True),
        ("br0", "bridge", True, True, True),
        ("ib0", "infiniband", True, False, False),
        ("wlp3s0", "wireless", True, False, False),
        ("docker0", "container", False, True, False),
    ]


def test_addresses_that_cannot_be_asked_for_are_missing(tmp_path: Path) -> None:
    _net(tmp_path, "eno1")
    (found,) = read_interfaces(tmp_path, lambda: GONE)  # type: ignore[misc]
    assert found.has_address == GONE
    assert isinstance(read_interfaces(tmp_path / "none", lambda: GONE), Missing)


def test_this_machine_has_a_loopback_with_an_address() -> None:
    found = gather_network()
    assert not isinstance(found.interfaces, Missing)
    assert any(one.kind == "loopback" and one.has_address is True for one in found.interfaces)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Network) == found


def test_a_hardware_address_in_a_name_is_folded() -> None:
    assert fold_mac("enx00e04c680001") == "enx…"
    assert fold_mac("enp90s0np0") == "enp90s0np0"


def test_the_environment_comes_before_the_users_file_and_this_before_the_machines(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_text("# all nodes\nNCCL_SOCKET_IFNAME = ib0\n")
    home = tmp_path / "home"
    home.mkdir()
    assert read_ifname(tmp_path, {}, home) == Ifname(value="ib0", source="/etc/nccl.conf")
    (home / ".nccl.conf").write_text("NCCL_SOCKET_IFNAME=eth1\n")
    assert read_ifname(tmp_path, {}, home) == Ifname(value="eth1", source="~/.nccl.conf")
    given_ = {"NCCL_SOCKET_IFNAME": "^enx00e04c680001,docker"}
    assert read_ifname(tmp_path, given_, home) == Ifname(value="^enx…,docker", source="environment")
    assert read_ifname(tmp_path / "x", {}, tmp_path / "y") is None


def test_a_value_that_is_no_list_of_interfaces_is_not_repeated(tmp_path: Path) -> None:
    found = read_ifname(tmp_path, {"NCCL_SOCKET_IFNAME": "token is s3cret!"}, tmp_path)
    assert isinstance(found, Missing)
    assert "s3cret" not in found.reason


def test_of_adapters_the_active_ports_count(tmp_path: Path) -> None:
    for name, state, layer in (("mlx5_0", "4: ACTIVE", "InfiniBand"), ("mlx5_1", "1: DOWN", "Ethernet")):
        port = tmp_path / "sys/class/infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(state + "\n")
        (port / "link_layer").write_text(layer + "\n")
    assert read_infiniband(tmp_path) == ("InfiniBand",)


@pytest.mark.parametrize(
    "value", ["http://jane:s3cret@secretproxy:3128", "jane:s3cret@secretproxy:3128", "s3cret://x", "s3cret"]
)
def test_of_a_proxy_no_more_than_its_scheme_is_kept(value: str) -> None:
    found = read_proxies({"HTTPS_PROXY": value, "no_proxy": value})
    text = msgspec.json.encode(found).decode()
    assert [proxy.variable for proxy in found] == ["https_proxy", "no_proxy"]
    assert found[0].scheme == ("http" if value.startswith("http") else None)
    for secret in ("s3cret", "jane", "secretproxy"):
        assert secret not in text


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        ("eth", "eth0", True),
        ("=eth", "eth0", False),
        ("=eth0", "eth0", True),
        ("^docker,lo", "eth0", True),
        ("^docker,lo", "docker0", False),
        ("^=eth0", "eth01", True),
        ("eno1:5000", "eno1", True),
        ("ib0,eth0", "eth0", True),
    ],
)
def test_names_match_as_nccls_documentation_says(value: str, name: str, expected: bool) -> None:
    assert matches(value, name) is expected


def test_a_sound_network_has_no_findings() -> None:
    assert judged(network()) == []
    assert judged(None) == []
    for value in ("eno1", "^docker,lo", "=eno1", "en", "eno1,ib0"):
        assert judged(told(value)) == []


def test_a_machine_without_a_gpu_has_no_findings_whatever_nccl_is_told() -> None:
    assert judge_network(told("nonsense"), changed(nvidia(), "driver", None), surroundings()) == []


def test_a_name_that_no_interface_has_is_a_warning_that_names_one_that_fits() -> None:
    (finding,) = judged(told("enp90s0"))
    assert (finding.rule, finding.severity) == ("nccl-no-usable-interface", "warning")
    assert finding.mend == ("export NCCL_SOCKET_IFNAME=eno1", "unset NCCL_SOCKET_IFNAME")
    assert "NCCL_SOCKET_IFNAME=enp90s0, from environment" in finding.evidence


def test_a_name_whose_interface_is_down_is_a_warning_too() -> None:
    (finding,) = judged(told("docker0", "/etc/nccl.conf"))
    assert finding.rule == "nccl-no-usable-interface"
    assert "down" in finding.title
    assert "/etc/nccl.conf" in finding.mend[0]


def test_loopback_is_a_hint_on_one_machine_and_a_warning_on_several() -> None:
    (finding,) = judged(told("lo"))
    assert (finding.rule, finding.severity) == ("nccl-wrong-interface", "info")
    (finding,) = judged(told("lo"), slurm(num_nodes=2))
    assert finding.severity == "warning"
    assert finding.mend[0] == "export NCCL_SOCKET_IFNAME=eno1"


def test_nccls_own_choice_of_a_container_bridge_is_a_warning_on_several_machines() -> None:
    faces = (interface("lo", "loopback"), interface("cni0", "container"), interface("eno1"))
    assert judged(network(interfaces=faces)) == []
    (finding,) = judged(network(interfaces=faces), slurm(num_nodes=2))
    assert (finding.rule, finding.severity) == ("nccl-wrong-interface", "warning")
    assert judged(network(interfaces=(*faces, interface("ib0", "infiniband"))), slurm(num_nodes=2)) == []


def test_no_interface_at_all_is_a_warning() -> None:
    (finding,) = judged(network(interfaces=(interface("lo", "loopback", up=False),)))
    assert finding.rule == "nccl-no-usable-interface"
    assert finding.mend


@pytest.mark.parametrize("path", ["interfaces", "nccl_ifname", ""])
def test_what_is_missing_is_said(path: str) -> None:
    (finding,) = judged(changed(network(), path, GONE) if path else GONE)
    assert finding.severity == "unknown"


def test_a_chosen_interface_of_which_it_is_not_known_whether_it_has_an_address_is_unknown() -> None:
    facts = told("eno1", interfaces=(interface("lo", "loopback"), interface("eno1", has_address=GONE)))
    (finding,) = judged(facts)
    assert finding.severity == "unknown"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.text(max_size=12), st.text(max_size=40))
def test_no_name_and_no_value_makes_a_reader_or_a_rule_fail(value: str, name: str, proxy: str) -> None:
    read_proxies({"http_proxy": proxy})
    found = read_ifname(Path("/nonexistent"), {"NCCL_SOCKET_IFNAME": value}, Path("/nonexistent"))
    judged(network(nccl_ifname=found, interfaces=(interface(name), interface("lo", "loopback"))))
