"""Docker, Podman, the Container Toolkit and CDI: what they print, how they are asked, and what follows for the GPU."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import engine_texts
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed
from machine_parts import (
    config,
    docker,
    engines,
    nvidia,
    podman,
    spec,
    surroundings,
    toolkit,
)

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import Engine, Engines
from torchdeck.machine.judge.engines import judge_engines
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.probes import engine_info
from torchdeck.machine.probes.docker_socket import Endpoint, find_endpoint, state_of
from torchdeck.machine.probes.engine_info import Info
from torchdeck.machine.probes.engines import engine, gather_docker, gather_engines, gather_podman, read_dev_char
from torchdeck.machine.probes.nvidia_toolkit import gather_toolkit, read_cdi, read_config
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")
GB = 10**9
DEFAULT = Endpoint("default", "/var/run/docker.sock")


def judged(facts: Any, where: Any = None) -> list[Finding]:
    return judge_engines(facts, nvidia(), where or surroundings(), Policy())


def rules(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.rule, finding.severity) for finding in findings]


def recorded(text: str, root: Path, *, endpoint: Endpoint | None = DEFAULT, program: str = "/usr/bin/docker") -> Engine:
    """Return the engine that prints a text."""
    info = engine_info.parse(text)
    assert isinstance(info, Info)
    return engine(
        program, info.client_version or "20.10.7", info, endpoint, daemon=info.daemon or "reachable",
        daemon_installed=True, root=root, names=frozenset({"jane"}),
    )  # fmt: skip


# What the engines print.


def test_plain_docker_is_read(tmp_path: Path) -> None:
    found = recorded(engine_texts.WITH_NVIDIA, tmp_path)
    assert (found.version, found.daemon_version, found.server) == ("28.3.2", "28.3.2", "docker")
    assert (found.rootless, found.desktop, found.snap) == (False, False, False)
    assert (found.cgroup_driver, found.cgroup_version) == ("systemd", 2)
    assert found.runtimes == ("io.containerd.runc.v2", "nvidia", "runc")
    assert (found.default_runtime, found.cdi_spec_dirs) == ("runc", ("/etc/cdi", "/var/run/cdi"))
    assert (found.storage, found.storage_free_bytes) == ("/var/lib/docker", None)
    (tmp_path / "var/lib/docker").mkdir(parents=True)
    free = recorded(engine_texts.WITH_NVIDIA, tmp_path).storage_free_bytes
    assert isinstance(free, int)
    assert free > 0


def test_no_name_no_address_and_no_secret_of_an_engine_is_kept(tmp_path: Path) -> None:
    for text in (engine_texts.PLAIN, engine_texts.ROOTLESS, engine_texts.DENIED, engine_texts.PODMAN):
        kept = msgspec.json.encode(recorded(text, tmp_path)).decode()
        for secret in ("jane", "s3cret", "secret-host", "fedoraproject", "fdd17e44"):
            assert secret not in kept


def test_snap_desktop_rootless_old_and_podman_behind_dockers_command_are_told_apart(tmp_path: Path) -> None:
    snap = recorded(engine_texts.SNAP, tmp_path)
    assert (snap.snap, snap.cdi_spec_dirs) == (True, ())
    desktop = recorded(engine_texts.DESKTOP, tmp_path)
    assert (desktop.desktop, desktop.storage_free_bytes) == (True, None)
    assert recorded(engine_texts.ROOTLESS, tmp_path).rootless is True
    old = recorded(engine_texts.OLD, tmp_path)
    assert (old.daemon_version, old.cgroup_version) == ("20.10.7", 1)
    assert recorded(engine_texts.BEHIND_PODMAN, tmp_path).server == "podman"


def test_a_daemon_that_does_not_answer_is_told_apart_by_its_words() -> None:
    denied, down = engine_info.parse(engine_texts.DENIED), engine_info.parse(engine_texts.DOWN)
    assert isinstance(denied, Info)
    assert isinstance(down, Info)
    assert (denied.daemon, down.daemon) == ("permission-denied", "not-running")
    assert isinstance(denied.runtimes, Missing)


def test_podman_is_read(tmp_path: Path) -> None:
    found = recorded(engine_texts.PODMAN, tmp_path, endpoint=None, program="/usr/bin/podman")
    assert (found.server, found.daemon_version, found.rootless) == ("podman", "5.4.1", True)
    assert (found.cgroup_driver, found.cgroup_version, found.runtimes) == ("systemd", 2, ("crun",))
    assert found.storage == "/home/$USER/.local/share/containers/storage"


def test_warnings_around_the_answer_do_not_spoil_it() -> None:
    assert isinstance(engine_info.parse("WARNING: old kernel\n" + engine_texts.PLAIN + "WARNING: more\n"), Info)


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)
_KEYS = ("ServerVersion", "OperatingSystem", "SecurityOptions", "CgroupDriver", "CgroupVersion", "Runtimes",
         "DefaultRuntime", "DockerRootDir", "CDISpecDirs", "ServerErrors", "ClientInfo", "host", "store",
         "version")  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_no_value_in_an_answer_makes_reading_or_judging_fail_or_turns_into_fine(changes: dict[str, Any]) -> None:
    info = engine_info.parse(engine_texts.docker_info(**changes))
    assert not isinstance(info, Missing)
    facts = engines(
        docker=engine("/usr/bin/docker", "28.3.2", info, DEFAULT, daemon=info.daemon or "reachable",
                      daemon_installed=True, root=Path("/nonexistent"), names=frozenset()),
        toolkit=None, cdi=(),
    )  # fmt: skip
    msgspec.json.encode(facts)
    findings = judged(facts)
    # Without toolkit and CDI there is always something to say, unless the daemon is another's.
    runtimes = info.runtimes if isinstance(info.runtimes, tuple) else ()
    assert findings or info.server == "podman" or any(name.startswith("nvidia") for name in runtimes)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), st.builds(lambda n: engine_texts.PLAIN[:n], st.integers(0, 1500))))
def test_no_text_makes_reading_fail(text: str) -> None:
    engine_info.parse(text)
    engine_info.version_in(text)


def test_an_answer_of_a_thousand_brackets_is_missing() -> None:
    assert isinstance(engine_info.parse('{"a":' * 100_000), Missing)


# How they are asked.


def _program(folder: Path, name: str, lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{lines}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="td-", dir="/tmp") as folder:
        yield Path(folder)


def _listen(file: Path) -> socket.socket:
    file.parent.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(file))
    listener.listen()
    return listener


def test_without_docker_and_podman_there_is_none(tmp_path: Path) -> None:
    found = gather_engines(tmp_path, {"PATH": str(tmp_path)})
    assert found == Engines(docker=None, podman=None, toolkit=None, cdi=(), dev_char_links=None)


def test_a_daemon_that_answers_is_asked_once(short: Path) -> None:
    log = short / "log"
    (short / "info.json").write_text(engine_texts.WITH_NVIDIA)
    _program(short / "bin", "docker", f'echo "$@" >> {log}\ncat {short}/info.json')
    with closing(_listen(short / "var/run/docker.sock")):
        found = gather_docker(short, {"PATH": f"{short}/bin:/usr/bin:/bin"})
    assert isinstance(found, Engine)
    assert (found.daemon, found.context, found.daemon_version) == ("reachable", "default", "28.3.2")
    assert log.read_text().splitlines() == ["info --format {{json .}}"]


def test_without_a_socket_the_daemon_is_not_asked(short: Path) -> None:
    log = short / "log"
    _program(short / "bin", "docker", f'echo "$@" >> {log}\necho "Docker version 17.12.0-ce, build c97c6d6"')
    found = gather_docker(short, {"PATH": f"{short}/bin:/usr/bin:/bin"})
    assert isinstance(found, Engine)
    assert (found.daemon, found.version, found.runtimes) == ("not-running", "17.12.0", None)
    assert log.read_text().splitlines() == ["--version"]


def test_a_socket_behind_which_systemd_would_start_a_daemon_is_left_alone(short: Path) -> None:
    with closing(_listen(short / "var/run/docker.sock")) as listener:
        (short / "run/systemd/system").mkdir(parents=True)
        assert state_of(DEFAULT, short) == "asleep"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
        (short / "run/docker.pid").write_text("7")
        assert state_of(DEFAULT, short) == "reachable"


def test_a_socket_that_nobody_listens_on_is_a_daemon_that_does_not_run(short: Path) -> None:
    _listen(short / "var/run/docker.sock").close()
    assert state_of(DEFAULT, short) == "not-running"


def test_a_daemon_on_another_machine_is_not_asked(tmp_path: Path) -> None:
    for host in ("tcp://build:2376", "ssh://jane@build"):
        endpoint = find_endpoint({"DOCKER_HOST": host}, tmp_path)
        assert endpoint == Endpoint("remote", None)
        assert state_of(endpoint, tmp_path) == "remote"


def test_the_context_is_found_as_docker_finds_it(tmp_path: Path) -> None:
    folder = tmp_path / ".docker"
    name = "desktop-linux"
    meta = folder / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    address = f"unix://{tmp_path}/.docker/desktop/docker.sock"
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": address}}}))
    assert find_endpoint({}, tmp_path) == DEFAULT
    (folder / "config.json").write_text(json.dumps({"currentContext": name, "auths": {"x": {"auth": "s3cret"}}}))
    assert find_endpoint({}, tmp_path).context == "desktop"
    assert find_endpoint({"DOCKER_CONTEXT": "default"}, tmp_path) == DEFAULT
    rootless = {"DOCKER_HOST": "unix:///run/user/1000/docker.sock", "XDG_RUNTIME_DIR": "/run/user/1000"}
    assert find_endpoint(rootless, tmp_path).context == "rootless"
    assert isinstance(find_endpoint({"DOCKER_CONTEXT": "gone"}, tmp_path).context, Missing)
    (folder / "config.json").write_text("[1")
    assert find_endpoint({}, tmp_path) == DEFAULT


def test_podman_under_dockers_name_is_not_docker(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "docker", "echo podman version 5.4.1")
    assert gather_docker(tmp_path, {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}) is None


def test_podman_is_asked_only_where_it_has_a_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    log = tmp_path / "log"
    (tmp_path / "info.json").write_text(engine_texts.PODMAN)
    _program(
        tmp_path / "bin",
        "podman",
        f'echo "$1" >> {log}\n[ "$1" = info ] && cat {tmp_path}/info.json || echo podman version 5.4.1',
    )
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    found = gather_podman(tmp_path, environment)
    assert isinstance(found, Engine)
    assert (found.version, found.rootless, found.server) == ("5.4.1", None, None)
    storage = "var/lib/containers/storage" if os.geteuid() == 0 else ".local/share/containers/storage"
    (tmp_path / storage).mkdir(parents=True)
    found = gather_podman(tmp_path, environment)
    assert isinstance(found, Engine)
    assert (found.version, found.rootless) == ("5.4.1", True)
    assert log.read_text().split() == ["--version", "info"]


def test_a_program_that_prints_rubbish_is_missing_and_not_fine(short: Path) -> None:
    _program(short / "bin", "docker", "echo rubbish; exit 3")
    with closing(_listen(short / "var/run/docker.sock")):
        found = gather_docker(short, {"PATH": f"{short}/bin:/usr/bin:/bin"})
    assert isinstance(found, Engine)
    assert isinstance(found.version, Missing)
    assert isinstance(found.runtimes, Missing)
    assert {finding.severity for finding in judged(engines(docker=found))} == {"unknown"}


def test_the_engines_of_this_machine_are_gathered_in_no_time() -> None:
    started = time.process_time()
    found = gather_engines()
    assert time.process_time() - started < 0.1
    assert msgspec.json.decode(msgspec.json.encode(found), type=Engines) == found


# NVIDIA's part.


def test_the_toolkit_is_read_from_its_programs_and_files(tmp_path: Path) -> None:
    for folder, text in (("etc", engine_texts.TOOLKIT_CONFIG), ("home", "[nvidia-container-cli]\nno-cgroups = true\n")):
        file = tmp_path / folder / "nvidia-container-runtime/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/ldconfig.real").write_text("")
    _program(tmp_path / "bin", "nvidia-ctk", "echo NVIDIA Container Toolkit CLI version 1.17.8; echo commit: f202b80")
    _program(tmp_path / "bin", "nvidia-container-runtime-hook", "exit 0")
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "XDG_CONFIG_HOME": str(tmp_path / "home")}
    found = gather_toolkit(tmp_path, environment)
    assert found is not None
    assert (found.version, found.hook) == ("1.17.8", True)
    assert found.config == config(ldconfig="@/sbin/ldconfig.real")
    assert not isinstance(found.user_config, Missing)
    assert found.user_config is not None
    assert found.user_config.no_cgroups


def test_a_configuration_that_is_no_toml_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert read_config(file, tmp_path) is None
    for text in ("[[", "a = " + "[" * 5000, "nvidia-container-cli = 3\n"):
        file.write_text(text)
        found = read_config(file, tmp_path)
        assert isinstance(found, Missing) or not found.no_cgroups  # type: ignore[union-attr]


def test_cdi_specs_are_read_with_driver_age_and_what_is_not_there(tmp_path: Path) -> None:
    for folder, name, text in (
        ("etc/cdi", "nvidia.yaml", engine_texts.CDI_SPEC.replace("{driver}", "550.54.15")),
        ("etc/cdi", "other.yaml", "kind: example.com/thing\n"),
        ("etc/cdi", "notes.txt", "nvidia.com/gpu\n"),
        ("var/run/cdi", "nvidia.json", engine_texts.CDI_JSON),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text(text)
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / "dev" / name).write_text("")
    found = read_cdi(tmp_path, ("/run/cdi", "/etc/cdi"), now_s=time.time() + 7200)
    assert not isinstance(found, Missing)
    assert [(one.path, one.driver, one.absent_devices) for one in found] == [
        ("/etc/cdi/nvidia.yaml", "550.54.15", ("/dev/dri/renderD129",)),
        ("/var/run/cdi/nvidia.json", "560.35.03", ()),
    ]
    assert 7190 < found[0].age_s < 7260


def test_links_by_number_are_looked_for_only_where_there_are_devices(tmp_path: Path) -> None:
    assert read_dev_char(tmp_path) is None
    (tmp_path / "dev/char").mkdir(parents=True)
    (tmp_path / "dev/nvidia0").write_text("")
    assert read_dev_char(tmp_path) is False
    (tmp_path / "dev/char/195:0").symlink_to("../nvidia0")
    assert read_dev_char(tmp_path) is True


# The rules.

_NO_GPU = changed(changed(nvidia(), "driver", None), "gpus", ())


def test_a_sound_machine_has_no_findings() -> None:
    assert judged(engines()) == []
    assert judged(engines(podman=podman())) == []
    assert judged(None) == []
    assert judged(engines(docker=None, toolkit=None, cdi=())) == []
    assert judged(engines(docker=docker(daemon="asleep", server=None, runtimes=None, storage_free_bytes=None))) == []


def test_dockers_command_alone_is_no_fault_on_a_ci_machine_or_in_a_container() -> None:
    client = docker(
        daemon="not-running", daemon_installed=False, server=None, daemon_version=None, runtimes=None, rootless=None,
        desktop=None, cgroup_driver=None, cgroup_version=None, cdi_spec_dirs=None, storage=None,
        storage_free_bytes=None,
    )  # fmt: skip
    assert judged(engines(docker=client)) == []
    installed = changed(client, "daemon_installed", True)
    assert judged(engines(docker=installed), surroundings(container="docker")) == []
    (finding,) = judge_engines(engines(docker=installed), _NO_GPU, surroundings(), Policy())
    assert (finding.rule, finding.severity) == ("docker-daemon-unreachable", "info")
    assert finding.mend == ("sudo systemctl start docker",)


def test_without_a_gpu_only_daemon_and_disk_matter() -> None:
    bad = engines(
        docker=docker(runtimes=("runc",), version="17.12.0", snap=True), toolkit=None, cdi=(), podman=podman()
    )
    assert judge_engines(bad, _NO_GPU, surroundings(), Policy()) == []
    full = changed(bad, "docker.storage_free_bytes", GB)
    assert rules(judge_engines(full, _NO_GPU, surroundings(), Policy())) == [("docker-disk-full", "warning")]


_PLAIN = ("io.containerd.runc.v2", "runc")
_CASES: list[tuple[str, Engines, list[tuple[str, str]]]] = [
    ("no toolkit", engines(docker=docker(runtimes=_PLAIN), toolkit=None, cdi=()),
     [("container-toolkit-missing", "warning")]),
    ("not registered", engines(docker=docker(runtimes=_PLAIN), cdi=()), [("container-toolkit-missing", "info")]),
    ("by CDI", engines(docker=docker(runtimes=_PLAIN)), []),
    ("by CDI under /run", engines(docker=docker(runtimes=_PLAIN, cdi_spec_dirs=("/run/cdi",)),
                                  cdi=(spec("/var/run/cdi/nvidia.yaml"),)), []),
    ("CDI off", engines(docker=docker(runtimes=_PLAIN, cdi_spec_dirs=(), daemon_version="25.0.3")),
     [("cdi-disabled", "warning")]),
    ("spec elsewhere", engines(docker=docker(runtimes=_PLAIN, cdi_spec_dirs=("/opt/cdi",))),
     [("cdi-spec-not-found", "warning")]),
    ("old driver in spec", engines(cdi=(spec(driver="535.104.05"),)), [("cdi-spec-stale", "warning")]),
    ("device gone", engines(cdi=(spec(absent_devices=("/dev/dri/renderD129",)),)), [("cdi-spec-stale", "warning")]),
    ("old spec, newer one wins", engines(cdi=(spec(driver="535.104.05"), spec("/var/run/cdi/nvidia.yaml"))), []),
    ("podman without spec", engines(docker=None, podman=podman(), cdi=()), [("cdi-spec-not-found", "warning")]),
    ("podman beside docker", engines(podman=podman(), cdi=()), [("cdi-spec-not-found", "info")]),
    ("podman by chance", engines(docker=None, podman=podman(), cdi=(), toolkit=None),
     [("cdi-spec-not-found", "info")]),
    ("old command", engines(docker=docker(version="17.12.0")), [("docker-cli-too-old", "warning")]),
    ("old daemon", engines(docker=docker(version="20.10.7", daemon_version="20.10.7")),
     [("docker-blocks-clone3", "warning")]),
    ("old toolkit", engines(toolkit=toolkit(version="1.4.0")), [("toolkit-too-old-for-cgroup2", "warning")]),
    ("old toolkit, cgroup v1", engines(toolkit=toolkit(version="1.4.0"), docker=docker(cgroup_version=1)), []),
    ("ldconfig gone", engines(toolkit=toolkit(config=config(ldconfig="@/sbin/ldconfig.real", ldconfig_exists=False))),
     [("toolkit-ldconfig-wrong", "warning")]),
    ("ldconfig inside", engines(toolkit=toolkit(config=config(ldconfig="/sbin/ldconfig"))),
     [("toolkit-ldconfig-wrong", "warning")]),
    ("snap", engines(docker=docker(snap=True, runtimes=_PLAIN)), [("docker-snap-confined", "warning")]),
    ("newer snap", engines(docker=docker(snap=True)), [("docker-snap-confined", "info")]),
    ("Desktop", engines(docker=docker(desktop=True, context="desktop", runtimes=_PLAIN)),
     [("docker-desktop-vm", "warning")]),
    ("rootless", engines(docker=docker(rootless=True, context="rootless")),
     [("rootless-cgroups-not-disabled", "warning")]),
    ("rootless, no file", engines(docker=docker(rootless=True, context="rootless"), toolkit=toolkit(config=None)),
     [("rootless-cgroups-not-disabled", "warning")]),
    ("rootless, told", engines(docker=docker(rootless=True), toolkit=toolkit(user_config=config(no_cgroups=True))), []),
    ("reload", engines(dev_char_links=False), [("nvml-lost-after-daemon-reload", "info")]),
    ("reload, cgroupfs", engines(dev_char_links=False, docker=docker(cgroup_driver="cgroupfs")), []),
    ("reload, CDI mode", engines(dev_char_links=False, toolkit=toolkit(config=config(mode="cdi"))), []),
    ("disk", engines(docker=docker(storage_free_bytes=5 * GB)), [("docker-disk-full", "warning")]),
    ("disk of podman", engines(podman=podman(storage_free_bytes=5 * GB)), [("disk-full", "warning")]),
    ("permission", engines(docker=docker(daemon="permission-denied", server=None, runtimes=None)),
     [("docker-socket-permission", "info")]),
    ("down", engines(docker=docker(daemon="not-running", server=None, runtimes=None, context="rootless")),
     [("docker-daemon-unreachable", "info")]),
    ("elsewhere", engines(docker=docker(daemon="remote", server=None, runtimes=None, context="remote")), []),
    ("behind podman", engines(docker=docker(server="podman", runtimes=("crun",)), toolkit=None, podman=podman()), []),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "expected"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES])
def test_each_state_of_the_engines_gives_its_finding_with_mend_and_evidence(
    facts: Engines, expected: list[tuple[str, str]]
) -> None:
    findings = judged(facts)
    assert rules(findings) == expected
    for finding in findings:
        assert finding.mend
        assert finding.evidence
        assert finding.needs
        assert "\n" not in finding.title


def test_inside_a_container_the_rules_about_gpus_find_nothing() -> None:
    for _, facts, expected in _CASES:
        general = {"docker-blocks-clone3", "docker-disk-full", "disk-full", "docker-socket-permission"}
        inside = judged(facts, surroundings(container="docker"))
        assert [rule for rule, _ in rules(inside)] == [rule for rule, _ in expected if rule in general]


def test_docker_desktop_under_windows_has_the_gpu() -> None:
    facts = engines(docker=docker(desktop=True, context="desktop", runtimes=_PLAIN, storage_free_bytes=None), cdi=())
    assert judged(facts, surroundings(wsl=2)) == []


def test_recorded_texts_give_the_findings_of_what_they_record(tmp_path: Path) -> None:
    expected = {
        engine_texts.PLAIN: ["container-toolkit-missing"],
        engine_texts.WITH_NVIDIA: [],
        engine_texts.SNAP: ["docker-snap-confined"],
        engine_texts.DESKTOP: ["docker-desktop-vm"],
        engine_texts.OLD: ["docker-blocks-clone3", "container-toolkit-missing"],
        engine_texts.BEHIND_PODMAN: [],
    }
    for text, ids in expected.items():
        facts = engines(docker=recorded(text, tmp_path), toolkit=None, cdi=())
        assert [rule for rule, _ in rules(judged(facts))] == ids
    one = engines(
        docker=None, podman=recorded(engine_texts.PODMAN, tmp_path, endpoint=None), cdi=(spec(driver="560.35.03"),)
    )
    (finding,) = judged(one)
    assert finding.rule == "cdi-spec-stale"
    assert "560.35.03; loaded is 550.54.15" in finding.title
    assert finding.mend[0] == "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


_REACHED = (
    "docker", "docker.daemon", "docker.runtimes", "docker.storage_free_bytes", "podman", "podman.storage_free_bytes",
    "docker.rootless", "docker.version", "cdi", "toolkit", "toolkit.version",
)  # fmt: skip


@pytest.mark.parametrize("path", _REACHED)
def test_what_is_missing_never_turns_into_fine(path: str) -> None:
    findings = judged(changed(engines(podman=podman()), path, GONE))
    assert findings
    assert {finding.severity for finding in findings} == {"unknown"}


def test_what_only_some_states_rest_on_is_said_in_those() -> None:
    for facts in (
        engines(docker=docker(runtimes=_PLAIN, cdi_spec_dirs=GONE)),
        engines(docker=docker(rootless=True), toolkit=toolkit(user_config=GONE)),
        engines(docker=docker(cgroup_driver=GONE), dev_char_links=False),
        engines(docker=docker(cgroup_version=GONE), toolkit=toolkit(version=GONE)),
        engines(docker=docker(cgroup_version=GONE), toolkit=toolkit(version="1.4.0")),
        GONE,
    ):
        assert {finding.severity for finding in judged(facts)} == {"unknown"}
    assert judge_engines(GONE, _NO_GPU, surroundings(), Policy()) == []


_TEXT = st.one_of(st.text(max_size=12), st.just("…"), st.sampled_from(["1", "20.10", "x.y", "9" * 30 + ".1"]))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["docker.version", "docker.daemon_version", "docker.storage", "toolkit.version", "docker.context"]),
    _TEXT,
    st.sets(st.sampled_from(_REACHED), max_size=3),
)
def test_no_fact_makes_a_rule_fail(path: str, text: str, gone: set[str]) -> None:
    facts = changed(engines(podman=podman()), path, text)
    for name in sorted(gone, key=len, reverse=True):
        facts = changed(facts, name, GONE)
    for finding in judged(facts):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", finding.rule)
