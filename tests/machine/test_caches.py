"""Caches: where the programs put them, how large, whose; and nobody's name in the answer."""

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
from machine_parts import cache, caches, host

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.caches import Cache, Caches
from torchdeck.machine.judge.caches import judge_caches
from torchdeck.machine.judge.present import in_shell
from torchdeck.machine.probes.caches import cache_places, gather_caches, read_cache

GONE = Missing(reason="the probe was ended")
NOBODY = frozenset({"jane"})


def test_each_cache_is_where_its_program_puts_it() -> None:
    found = cache_places({"USER": "jane"}, Path("/home/jane"), Path("/tmp"))
    assert {name: (str(path), variable) for name, (path, variable) in found.items()} == {
        "inductor": ("/tmp/torchinductor_jane", None),
        "triton": ("/home/jane/.triton/cache", None),
        "huggingface": ("/home/jane/.cache/huggingface", None),
        "torch_hub": ("/home/jane/.cache/torch", None),
        "pip": ("/home/jane/.cache/pip", None),
        "uv": ("/home/jane/.cache/uv", None),
    }


def test_a_variable_moves_its_cache_and_the_general_one_those_that_follow_it() -> None:
    given_ = {"TORCHINDUCTOR_CACHE_DIR": "/a", "TRITON_HOME": "/b", "HF_HOME": "/c", "XDG_CACHE_HOME": "/d"}
    found = cache_places(given_, Path("/home/jane"), Path("/tmp"))
    assert found["inductor"] == (Path("/a"), "TORCHINDUCTOR_CACHE_DIR")
    assert found["triton"] == (Path("/b/.triton/cache"), "TRITON_HOME")
    assert found["huggingface"] == (Path("/c"), "HF_HOME")
    assert found["uv"] == (Path("/d/uv"), "XDG_CACHE_HOME")


def test_a_cache_is_measured_without_following_links(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/file").write_bytes(b"x" * 100_000)
    (folder / "loop").symlink_to(folder)
    found = read_cache(folder, None, NOBODY, 5.0)
    assert isinstance(found, Cache)
    assert found.size_bytes is not None
    assert 100_000 <= found.size_bytes < 300_000
    assert (found.exists, found.complete, found.mine, found.writable, found.num_locked) == (True, True, True, True, 0)
    assert found.owner_uid == os.geteuid()


def test_a_cache_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    found = read_cache(tmp_path / "not/yet", None, NOBODY, 1.0)
    assert isinstance(found, Cache)
    assert (found.exists, found.writable, found.size_bytes, found.owner_uid) == (False, True, None, None)


def test_counting_ends_in_time_and_says_so(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).mkdir()
    started = time.monotonic()
    found = read_cache(tmp_path, None, NOBODY, 0.0)
    assert isinstance(found, Cache)
    assert not found.complete
    assert time.monotonic() - started < 1


def test_a_file_in_the_place_of_a_cache_and_a_path_that_is_none_are_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    found = read_cache(file, None, NOBODY, 1.0)
    assert isinstance(found, Cache)
    assert not found.writable
    assert isinstance(read_cache(file / "below", None, NOBODY, 1.0), Cache)
    assert isinstance(read_cache(Path("/tmp/\0"), None, NOBODY, 1.0), Missing)


def test_the_users_name_is_in_no_path() -> None:
    for path in ("/tmp/torchinductor_jane", "/scratch/jane/hf", "/data/jane"):
        found = read_cache(Path(path), None, NOBODY, 0.0)
        assert isinstance(found, Cache)
        assert "jane" not in found.path


def test_all_caches_of_this_machine_are_gathered_in_a_fraction_of_a_second() -> None:
    started = time.process_time()
    found = gather_caches()
    assert time.process_time() - started < 0.25
    assert msgspec.json.decode(msgspec.json.encode(found), type=Caches) == found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away, and root may write everywhere")
def test_a_folder_of_somebody_else_is_seen_by_its_owner(tmp_path: Path) -> None:
    inner = tmp_path / "cache"
    inner.mkdir()
    os.chown(inner, 12_345, 12_345)
    found = read_cache(inner, None, NOBODY, 1.0)
    assert isinstance(found, Cache)
    assert (found.mine, found.owner_uid, found.writable) == (False, 12_345, True)


# The rules.


def test_sound_caches_have_no_findings() -> None:
    assert judge_caches(caches(), host()) == []
    assert judge_caches(None, host()) == []
    absent = cache("~/.triton/cache", exists=False, size_bytes=None, mine=None, owner_uid=None)
    assert judge_caches(caches(triton=absent), host()) == []


def test_what_root_may_write_is_no_finding_though_it_belongs_to_another() -> None:
    assert judge_caches(caches(triton=cache("~/.triton/cache", mine=False, owner_uid=1000)), host()) == []


@pytest.mark.parametrize(
    ("name", "severity"),
    [("inductor", "warning"), ("triton", "warning"), ("uv", "warning"), ("pip", "info"), ("huggingface", "info"),
     ("torch_hub", "info")],
)  # fmt: skip
@pytest.mark.parametrize("change", [{"mine": False, "writable": False, "owner_uid": 0}, {"num_locked": 3}])
def test_a_cache_of_somebody_else_is_found_with_two_ways_out(name: str, severity: str, change: dict[str, Any]) -> None:
    (finding,) = judge_caches(caches(**{name: cache("~/a/cache", **change)}), host())
    assert (finding.rule, finding.severity) == ("cache-owned-by-other-uid", severity)
    assert finding.mend[0] == 'sudo chown -R "$(id -u):$(id -g)" ~/a/cache'
    assert finding.mend[1].startswith("export ")
    assert finding.evidence


def test_a_user_without_a_name_cannot_form_inductors_path() -> None:
    nameless = changed(
        changed(changed(host(), "user.in_passwd", False), "user.named", False), "user.uid", 1_000_660_000
    )
    (finding,) = judge_caches(caches(), nameless)
    assert (finding.rule, finding.severity) == ("cache-uid-without-passwd", "warning")
    assert "1000660000" in finding.title
    assert finding.mend[0] == "export USER=dev LOGNAME=dev"
    assert judge_caches(caches(), changed(nameless, "user.named", True)) == []
    told = cache("/scratch/cache", variable="TORCHINDUCTOR_CACHE_DIR")
    assert judge_caches(caches(inductor=told), nameless) == []


def test_what_is_missing_is_said_where_compiling_depends_on_it() -> None:
    nameless = changed(changed(host(), "user.in_passwd", GONE), "user.named", False)
    assert [one.severity for one in judge_caches(caches(), nameless)] == ["unknown"]
    assert [one.severity for one in judge_caches(caches(), changed(host(), "user", GONE))] == ["unknown"]
    for name in ("inductor", "triton", "uv"):
        assert [one.severity for one in judge_caches(caches(**{name: GONE}), host())] == ["unknown"]
    assert judge_caches(caches(pip=GONE), host()) == []
    assert [one.severity for one in judge_caches(GONE, host())] == ["unknown"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~/.cache/uv", "~/.cache/uv"),
        ("/tmp/torchinductor_$USER", "/tmp/torchinductor_$USER"),
        ("/data/$USER/hf", "/data/$USER/hf"),
        ("~/my cache", "~/'my cache'"),
        ("/tmp/$(reboot)", "'/tmp/$(reboot)'"),
        ("/tmp/a;b", "'/tmp/a;b'"),
    ],
)
def test_a_path_goes_into_a_command_as_nothing_but_a_path(path: str, expected: str) -> None:
    assert in_shell(path) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.sampled_from([None, 0, 1000]), st.booleans(), st.integers(0, 3))
def test_no_cache_makes_a_rule_fail(path: str, owner: int | None, writable: bool, num_locked: int) -> None:
    mine = None if owner is None else owner == 1000
    facts = caches(triton=cache(path, owner_uid=owner, mine=mine, writable=writable, num_locked=num_locked))
    findings = judge_caches(facts, host())
    assert bool(findings) == ((mine is False and not writable) or num_locked > 0)
