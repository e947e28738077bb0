"""Each rule on the machine that it is about, and the law that what is missing never turns into fine."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import HOSTS, changed, h100

from torchdeck.machine.facts import Facts, Gpu, Missing, TorchBuild, decode_facts
from torchdeck.machine.judge import judge, judge_for_build
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")


def rules(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


def test_a_sound_machine_has_no_findings() -> None:
    assert judge(h100()) == []
    assert judge_for_build(h100(), "2.6.0", "cu124", "pypi") == []


@pytest.mark.parametrize(
    ("path", "value", "rule", "severity"),
    [
        ("toolchain.c", None, "compile-no-c-compiler", "warning"),
        ("toolchain.cxx", None, "compile-no-c-compiler", "warning"),
        ("python.headers", None, "compile-no-python-headers", "warning"),
        ("python.version", "3.14.0", "python-unsupported", "warning"),
        ("storage.data.free_bytes", 10**9, "disk-full", "warning"),
        ("storage.data.num_free_inodes", 50, "disk-full", "warning"),
        ("storage.data.writable", False, "home-not-writable", "error"),
        ("storage.tmp.free_bytes", 10**8, "pip-tmpdir-full", "warning"),
        ("storage.tmp.noexec", True, "tmp-noexec", "warning"),
        ("storage.tmp.writable", False, "tmp-not-writable", "error"),
        ("storage.cache.noexec", True, "cache-noexec", "warning"),
        ("storage.shm.free_bytes", 64 * 2**20, "shm-too-small", "warning"),
        ("storage.shm.writable", False, "shm-not-writable", "error"),
        ("storage.home_set", False, "cache-home-unset", "warning"),
        ("storage.home.writable", False, "home-not-writable", "warning"),
        ("nvidia.driver", None, "host-driver-missing", "warning"),
        ("nvidia.gpus", (), "driver-versions-mixed", "warning"),
    ],
)
def test_one_thing_wrong_gives_the_finding_of_its_rule_with_a_mend(
    path: str, value: Any, rule: str, severity: str
) -> None:
    findings = judge(changed(h100(), path, value))
    assert rules(findings) == {rule}
    assert findings[0].severity == severity
    assert findings[0].mend
    assert findings[0].evidence


def test_a_gpu_on_the_bus_of_a_container_without_a_driver_asks_for_gpus_in_the_engines_words() -> None:
    facts = changed(changed(h100(), "nvidia.driver", None), "system.container", "/.dockerenv")
    (finding,) = judge(facts)
    assert finding.rule == "gpu-not-passed-to-container"
    assert any("--gpus all" in text for text in finding.mend)


def test_no_gpu_and_no_driver_is_fine() -> None:
    facts = changed(changed(h100(), "nvidia.driver", None), "nvidia.gpus", ())
    assert judge(changed(facts, "nvidia.num_pci", 0)) == []


def test_an_old_driver_is_an_error_for_the_build_that_needs_a_newer_one() -> None:
    facts = changed(h100(), "nvidia.driver.version", "470.82.01")
    (finding,) = judge_for_build(facts, "2.6.0", "cu124", "pypi")
    assert (finding.rule, finding.severity) == ("driver-too-old", "error")
    assert "525.60.13" in finding.needs


def test_a_driver_between_floor_and_bundled_is_only_information() -> None:
    facts = changed(h100(), "nvidia.driver.version", "535.104.05")
    (finding,) = judge_for_build(facts, "2.6.0", "cu124", "pypi")
    assert (finding.rule, finding.severity) == ("ptx-newer-than-driver", "info")


def test_a_blackwell_gpu_under_2_6_0_is_an_error_that_names_both() -> None:
    gpu = Gpu(index=0, name="NVIDIA GeForce RTX 5090", cc=(12, 0), memory_bytes=34_000_000_000)
    facts = changed(changed(h100(), "nvidia.gpus", (gpu,)), "nvidia.driver.version", "580.95.05")
    (finding,) = judge_for_build(facts, "2.6.0", "cu124", "pypi")
    assert (finding.rule, finding.severity) == ("arch-newer-than-wheel", "error")
    assert "sm_120" in finding.title
    assert "RTX 5090" in finding.title


def test_the_torch_that_is_installed_is_judged_by_the_doctor() -> None:
    facts = changed(h100(), "nvidia.driver.version", "470.82.01")
    facts = changed(facts, "python.torch", TorchBuild(version="2.6.0+cu124", cuda="12.4"))
    assert "driver-too-old" in rules(judge(facts))


def test_errors_come_before_warnings_and_these_before_what_is_not_known() -> None:
    facts = changed(h100(), "toolchain", GONE)
    facts = changed(changed(facts, "storage.tmp.noexec", True), "storage.data.writable", False)
    assert [finding.severity for finding in judge(facts)] == ["error", "warning", "unknown"]


def _paths(value: Any, prefix: str = "") -> list[str]:
    """Name every field of the facts that may be Missing, by its type."""
    found = []
    for field in msgspec.structs.fields(type(value)):
        path = f"{prefix}{field.encode_name}"
        if "Missing" in str(field.type):
            found.append(path)
        inner = getattr(value, field.encode_name)
        if isinstance(inner, msgspec.Struct) and not isinstance(inner, Missing):
            found += _paths(inner, f"{path}.")
    return found


# What no rule rests on yet: naming only.
_ONLY_SHOWN = {
    "system.distribution", "system.pretty_name", "system.glibc", "system.container", "nvidia.driver.cuda",
    "nvidia.num_pci", "python.torch", "toolchain.c.version", "toolchain.cxx.version",
    "toolchain.nvcc", "toolchain.ptxas",
    "storage.home.filesystem", "storage.tmp.filesystem", "storage.shm.filesystem", "storage.data.filesystem",
    "host.cpu", "host.cpu.model", "host.cpu.num_physical", "host.cpu.num_logical", "host.cpu.num_usable",
    "host.cpu.flags", "host.cpu.num_numa_nodes", "host.memory.swap_bytes", "host.memory.quota_cores",
    "host.user.in_passwd", "host.limits.nofile_hard", "host.limits.memlock_soft_bytes", "host.limits.memlock_exempt",
    "host.limits.stack_soft_bytes", "host.clock", "host.clock.synchronised", "surroundings",
    "surroundings.container", "surroundings.virtual_machine", "engines.docker.daemon_version",
    "engines.docker.context", "engines.docker.desktop", "engines.docker.cgroup_driver",
    "engines.docker.cgroup_version", "engines.docker.default_runtime", "engines.docker.cdi_spec_dirs",
    "engines.docker.storage", "engines.toolkit.config", "engines.toolkit.user_config", "caches.huggingface",
    "caches.torch_hub", "caches.pip",
    "storage.cache.filesystem", "storage.home.noexec", "storage.shm.noexec", "system",
}  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(st.sets(st.sampled_from(sorted(_paths(h100()))), min_size=1, max_size=6))
def test_what_is_missing_never_turns_into_fine(paths: set[str]) -> None:
    facts: Facts = h100()
    for path in sorted(paths, key=len, reverse=True):
        facts = changed(facts, path, GONE)
    findings = judge_for_build(facts, "2.6.0", "cu124", "pypi") + judge(facts)
    if paths - _ONLY_SHOWN:
        assert findings
    assert {finding.severity for finding in findings} <= {"unknown", "warning"}
    for finding in findings:
        assert finding.severity == "unknown" or finding.rule == "driver-versions-mixed"


@pytest.mark.parametrize("file", sorted(HOSTS.glob("*.json")), ids=lambda file: file.stem)
def test_a_recorded_machine_gets_the_findings_that_are_recorded_with_it(file: Any) -> None:
    data = file.read_bytes()
    expected = msgspec.json.decode(data)["expected_rules"]
    assert [finding.rule for finding in judge(decode_facts(data, file.name))] == expected


def test_a_rule_that_fails_becomes_a_finding_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("torchdeck.machine.judge.judge")

    def broken(*_: Any) -> list[Finding]:
        raise KeyError("nobody thought of this")

    monkeypatch.setattr(module, "judge_compilers", broken)
    findings = judge(changed(h100(), "storage.tmp.noexec", True))
    assert {finding.rule for finding in findings} == {"tmp-noexec", "doctor-rule-failed"}
