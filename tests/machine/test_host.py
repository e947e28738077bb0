"""Limits, memory and clock: read from trees that stand for a machine, and judged."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed
from machine_parts import GIB, host, network, nvidia, slurm, surroundings

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.host import Clock, Host
from torchdeck.machine.judge.host import judge_host
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.probes.host import (
    cgroup_version,
    gather_host,
    read_clock,
    read_cpu,
    read_limits,
    read_memory,
    read_user,
)
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")
_MEMINFO = (
    "MemTotal:       65536000 kB\nMemFree:        1000 kB\nMemAvailable:   32768000 kB\nSwapTotal:      2048 kB\n"
)
_LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max processes             96363                96363                processes
Max open files            1024                 524288               files
Max locked memory         65536                65536                bytes
"""
_CPUINFO = "".join(
    f"processor\t: {number}\nmodel name\t: Intel(R) Xeon(R) Gold\nphysical id\t: {number // 4}\ncore id\t\t: "
    f"{number // 2 % 2}\nflags\t\t: fpu avx2 avx512f amx_tile amx_bf16 hypervisor\n\n"
    for number in range(8)
)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def judged(facts: Host | Missing | None, where: Any = None, net: Any = None) -> list[Finding]:
    return judge_host(facts, nvidia(), network() if net is None else net, where or surroundings(), Policy())


# The readers.


def test_threads_cores_and_sockets_are_told_apart(tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/cpuinfo": _CPUINFO, "proc/self/status": "Cpus_allowed_list:\t0-2,7\n"})
    (root / "sys/devices/system/node/node0").mkdir(parents=True)
    (root / "sys/devices/system/node/node1").mkdir()
    cpu = read_cpu(root, "x86_64")
    assert (cpu.num_logical, cpu.num_physical, cpu.num_usable, cpu.num_numa_nodes) == (8, 4, 4, 2)
    assert cpu.flags == ("avx2", "avx512f", "amx_bf16", "amx_tile")
    assert cpu.model == "Intel(R) Xeon(R) Gold"


def test_an_arm_processor_has_its_cores_from_sys_and_no_name(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd sve bf16\n\nprocessor\t: 1\nFeatures\t: fp\n"}
    for number in range(2):
        files[f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"] = f"{number}\n"
    cpu = read_cpu(tree(tmp_path, files), "aarch64")
    assert (cpu.num_physical, cpu.flags) == (2, ("asimd", "sve", "bf16"))
    assert isinstance(cpu.model, Missing)


def test_without_proc_everything_is_missing_and_nothing_fails(tmp_path: Path) -> None:
    cpu, memory, limits = read_cpu(tmp_path, "x86_64"), read_memory(tmp_path), read_limits(tmp_path)
    assert isinstance(cpu.num_physical, Missing)
    assert isinstance(cpu.num_logical, Missing)
    assert isinstance(memory.total_bytes, Missing)
    assert (memory.cgroup, memory.limit_bytes) == (None, None)
    assert isinstance(limits.nofile_soft, Missing)
    assert isinstance(limits.memlock_exempt, Missing)


def test_in_version_2_the_tightest_limit_of_the_groups_above_counts(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    root = tree(tmp_path, {
        "proc/meminfo": _MEMINFO, "proc/self/cgroup": "0::/user.slice/job\n", f"{base}/cgroup.controllers": "memory",
        f"{base}/user.slice/memory.max": "8589934592\n", f"{base}/user.slice/memory.current": "4000000000\n",
        f"{base}/user.slice/memory.stat": "anon 1\ninactive_file 1000000000\n",
        f"{base}/user.slice/cpu.max": "400000 100000\n", f"{base}/user.slice/job/memory.max": "max\n",
        f"{base}/user.slice/job/cpu.max": "150000 100000\n",
    })  # fmt: skip
    memory = read_memory(root)
    assert (memory.cgroup, memory.limit_bytes, memory.used_bytes) == ("v2", 8 * GIB, 3_000_000_000)
    assert (memory.quota_cores, memory.total_bytes, memory.swap_bytes) == (1.5, 65_536_000 * 1024, 2048 * 1024)


def test_in_version_1_a_huge_number_is_no_limit_and_the_group_of_a_container_is_its_mount(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    files = {
        "proc/meminfo": _MEMINFO, "proc/self/cgroup": "5:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n",
        f"{base}/memory/memory.limit_in_bytes": "9223372036854771712\n", f"{base}/memory/memory.usage_in_bytes": "5\n",
    }  # fmt: skip
    memory = read_memory(tree(tmp_path, files))
    assert (memory.cgroup, memory.limit_bytes, memory.used_bytes, memory.quota_cores) == ("v1", None, None, None)
    more = {
        f"{base}/memory/memory.limit_in_bytes": "1073741824\n", f"{base}/memory/memory.usage_in_bytes": "700\n",
        f"{base}/memory/memory.stat": "total_inactive_file 500\n", f"{base}/cpu/cpu.cfs_quota_us": "50000\n",
        f"{base}/cpu/cpu.cfs_period_us": "100000\n", f"{base}/unified/cgroup.controllers": "",
    }  # fmt: skip
    memory = read_memory(tree(tmp_path, more))
    assert (memory.cgroup, memory.limit_bytes, memory.used_bytes, memory.quota_cores) == ("hybrid", GIB, 200, 0.5)


def test_limits_are_those_of_proc_and_of_the_group_with_the_fewest_processes_left(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    root = tree(tmp_path, {
        "proc/self/limits": _LIMITS, "proc/self/status": "CapEff:\t0000000000004000\n",
        "proc/self/uid_map": "         0          0 4294967295\n", "proc/self/cgroup": "0::/a/b\n",
        f"{base}/cgroup.controllers": "", f"{base}/a/pids.max": "100\n", f"{base}/a/pids.current": "90\n",
        f"{base}/a/b/pids.max": "50\n", f"{base}/a/b/pids.current": "5\n",
    })  # fmt: skip
    limits = read_limits(root)
    assert (limits.nofile_soft, limits.nofile_hard, limits.memlock_soft_bytes) == (1024, 524_288, 65_536)
    assert (limits.nproc_soft, limits.pids_max, limits.num_pids) == (96_363, 100, 90)
    assert limits.memlock_exempt is True


def test_a_capability_inside_a_user_namespace_does_not_lift_the_limit_of_locked_memory(tmp_path: Path) -> None:
    files = {"proc/self/status": "CapEff:\t000001ffffffffff\n", "proc/self/uid_map": "0 1000 1\n1 100000 65536\n"}
    assert read_limits(tree(tmp_path, files)).memlock_exempt is False


@pytest.mark.parametrize(
    ("environment", "known", "expected"),
    [({}, True, (True, False)), ({}, False, (False, False)), ({"USER": "x"}, False, (False, True))],
)
def test_a_user_has_a_name_from_the_database_or_the_environment(
    environment: dict[str, str], known: bool, expected: tuple[bool, bool]
) -> None:
    user = read_user(1_000_660_000, environment, lambda uid: known)
    assert (user.in_passwd, user.named) == expected
    assert not user.root


def test_a_user_database_that_fails_is_missing_and_not_false() -> None:
    def fails(uid: int) -> bool:
        raise OSError("the directory service is gone")

    assert isinstance(read_user(1, {}, fails).in_passwd, Missing)


@pytest.mark.parametrize(
    ("files", "said", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"run/systemd/timesync/synchronized": ""}, False, True),
        ({".dockerenv": ""}, False, None),
    ],
)
def test_the_clock_is_wrong_only_where_nothing_can_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], said: bool, expected: bool | None
) -> None:
    for variable in ("KUBERNETES_SERVICE_HOST", "container", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        monkeypatch.delenv(variable, raising=False)
    root = tree(tmp_path, {"proc/1/cgroup": "0::/init.scope\n", "proc/cpuinfo": "flags\t: fpu\n", **files})
    assert read_clock(root, lambda: said).synchronised is expected


@pytest.mark.parametrize("files", [{"run/chrony/chronyd.pid": "7"}, {"proc/cpuinfo": "flags\t: fpu hypervisor\n"}])
def test_a_clock_that_something_may_keep_is_not_called_wrong(tmp_path: Path, files: dict[str, str]) -> None:
    root = tree(tmp_path, {"proc/1/cgroup": "0::/init.scope\n", "proc/cpuinfo": "flags\t: fpu\n", **files})
    assert isinstance(read_clock(root, lambda: False).synchronised, Missing)


def test_this_machine_is_read_in_no_time_and_survives_being_written() -> None:
    started = time.process_time()
    found = gather_host()
    assert time.process_time() - started < 0.1
    assert msgspec.json.decode(msgspec.json.encode(found), type=Host) == found
    assert not isinstance(found.memory, Missing)
    assert not isinstance(found.cpu, Missing)
    assert found.cpu.num_usable == len(os.sched_getaffinity(0))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([
            "proc/cpuinfo", "proc/meminfo", "proc/self/cgroup", "proc/self/limits", "proc/self/status",
            "proc/self/uid_map", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/cpu.max", "sys/fs/cgroup/pids.max",
            "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat", "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        ]),
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([b"max\n", b"0\n", b"-1\n", b"9" * 30, b"0::/../../..\n", b"5:memory:/a\n", b"1 0\n",
                             _MEMINFO.encode(), _LIMITS.encode(), b"CapEff:\tffffffffffffffff\n", b"\xc2\xb2\n"]),
        ),
    )
)  # fmt: skip
def test_no_content_of_proc_makes_a_reader_fail(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    root = tmp_path_factory.mktemp("root")
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    read_cpu(root, "x86_64")
    read_limits(root)
    memory = read_memory(root)
    assert memory.cgroup == cgroup_version(root)
    msgspec.json.encode(memory)


# The rules.


def test_a_sound_host_has_no_findings() -> None:
    assert judged(host()) == []
    assert judged(None) == []


def test_a_sound_container_and_a_small_ci_machine_have_no_findings() -> None:
    facts = changed(changed(host(), "memory.limit_bytes", 16 * GIB), "memory.used_bytes", GIB)
    facts = changed(changed(facts, "clock", Clock(synchronised=None)), "memory.quota_cores", 2.0)
    assert judged(facts, surroundings(container="docker")) == []
    small = changed(changed(host(), "memory.total_bytes", 7 * GIB), "memory.available_bytes", 5 * GIB)
    assert judged(changed(small, "clock.synchronised", GONE), surroundings(virtual_machine=True)) == []


@pytest.mark.parametrize(
    ("path", "value", "rule", "severity"),
    [
        ("memory.total_bytes", GIB, "host-ram-exhausted", "warning"),
        ("memory.available_bytes", 100 * 2**20, "host-ram-exhausted", "warning"),
        ("limits.nofile_soft", 256, "nofile-limit", "warning"),
        ("limits.nproc_soft", 100, "process-limit-reached", "warning"),
        ("limits.pids_max", 400, "process-limit-reached", "warning"),
        ("limits.num_pids", 10_800, "process-limit-reached", "warning"),
        ("clock.synchronised", False, "clock-not-synchronised", "info"),
    ],
)
def test_one_thing_wrong_gives_the_finding_of_its_rule_with_a_mend(
    path: str, value: Any, rule: str, severity: str
) -> None:
    (finding,) = judged(changed(host(), path, value))
    assert (finding.rule, finding.severity) == (rule, severity)
    assert finding.mend
    assert finding.evidence
    assert finding.needs


def test_the_limit_of_a_container_counts_and_its_own_use_of_it() -> None:
    facts = changed(changed(host(), "memory.limit_bytes", GIB), "memory.used_bytes", 0)
    (finding,) = judged(facts, surroundings(container="docker"))
    assert "docker run --memory" in finding.mend[0]
    assert "1.0 GiB" in finding.title
    facts = changed(changed(host(), "memory.limit_bytes", 8 * GIB), "memory.used_bytes", 8 * GIB - 1000)
    (finding,) = judged(facts, slurm())
    assert finding.mend == ("sbatch --mem=32G …",)
    assert "8.0 GiB of 8.0 GiB used" in finding.evidence[1]


def test_root_is_held_to_no_number_of_processes() -> None:
    facts = changed(changed(host(), "limits.nproc_soft", 100), "user.root", True)
    assert judged(facts) == []


def test_a_soft_limit_of_files_that_may_be_raised_is_raised_by_the_shell() -> None:
    (finding,) = judged(changed(changed(host(), "limits.nofile_soft", 256), "limits.nofile_hard", 4096))
    assert finding.mend[0] == "ulimit -n 4096"
    (finding,) = judged(changed(changed(host(), "limits.nofile_soft", 256), "limits.nofile_hard", 256))
    assert finding.mend[0].startswith("sudo prlimit")


@pytest.mark.parametrize(
    ("layers", "uverbs", "where", "severity"),
    [
        (("InfiniBand",), 1, None, "warning"),
        (("Ethernet",), 1, None, "info"),
        (("Ethernet",), 1, slurm(num_nodes=2), "warning"),
        (("InfiniBand",), 0, None, None),
        ((), 0, None, None),
    ],
)
def test_locked_memory_matters_only_where_gpus_may_use_an_rdma_adapter(
    layers: tuple[str, ...], uverbs: int, where: Any, severity: str | None
) -> None:
    net = network(infiniband=layers, num_uverbs=uverbs)
    findings = judged(host(), where, net)
    assert [(finding.rule, finding.severity) for finding in findings] == (
        [("memlock-limit", severity)] if severity else []
    )
    assert all(finding.mend and finding.evidence for finding in findings)
    assert judge_host(host(), changed(nvidia(), "driver", None), net, where, Policy()) == []
    assert judged(changed(host(), "limits.memlock_soft_bytes", None), where, net) == []
    assert judged(changed(host(), "limits.memlock_exempt", True), where, net) == []


def test_a_clock_that_nothing_keeps_is_a_warning_on_several_machines() -> None:
    (finding,) = judged(changed(host(), "clock.synchronised", False), slurm(num_nodes=4))
    assert finding.severity == "warning"
    (finding,) = judged(changed(host(), "clock.synchronised", GONE), slurm(num_nodes=4))
    assert finding.severity == "unknown"


# What is missing is said where a rule rests on it; the others are only shown, or matter elsewhere.
_RESTED_ON = (
    "memory", "memory.total_bytes", "memory.available_bytes", "memory.limit_bytes", "memory.used_bytes", "limits",
    "limits.nofile_soft", "limits.nproc_soft", "limits.pids_max", "limits.num_pids",
)  # fmt: skip
_SHOWN = ("cpu", "user", "clock", "cpu.num_usable", "limits.stack_soft_bytes", "memory.swap_bytes", "user.in_passwd")


@settings(max_examples=200, deadline=None)
@given(st.sets(st.sampled_from(_RESTED_ON + _SHOWN), min_size=1, max_size=6))
def test_what_is_missing_never_turns_into_fine(paths: set[str]) -> None:
    facts: Host = host()
    for path in sorted(paths, key=len, reverse=True):
        facts = changed(facts, path, GONE)
    findings = judged(facts)
    assert bool(findings) == bool(paths & set(_RESTED_ON))
    assert {finding.severity for finding in findings} <= {"unknown"}


def test_a_host_that_could_not_be_read_at_all_is_one_unknown() -> None:
    (finding,) = judged(GONE)
    assert (finding.severity, finding.evidence) == ("unknown", (GONE.reason,))
