"""``torchdeck explain`` as people and programs call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Home

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.0 GiB memory in use. Of the "
    "allocated memory 58.0 GiB is allocated by PyTorch, and 19.50 GiB is reserved by PyTorch but unallocated.\n"
)


def explain(home: Home, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchdeck", "explain", *arguments],
        input=text, env=home.env, cwd=home.project, capture_output=True, text=True, check=False,
    )  # fmt: skip


def found(home: Home, text: str, *arguments: str) -> Any:
    done = explain(home, text, "--json", *arguments)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_a_log_on_standard_input_gives_cause_evidence_and_mend(home: Home) -> None:
    report = found(home, f"step 1\nstep 2\n{OOM}")
    first = report["findings"][0]
    assert report["schema"] == "torchdeck.findings/1"
    assert first["rule"] == "oom-fragmentation"
    assert first["evidence"][0]["line"] == 3
    assert 0 < first["confidence"] < 1
    assert any("command" in step for step in first["mend"])
    assert first["tell_apart"]


def test_an_error_exits_with_1_and_a_sound_log_with_0(home: Home) -> None:
    assert explain(home, OOM).returncode == 1
    sound = explain(home, "epoch 1 loss 0.5\nepoch 2 loss 0.4\n")
    assert sound.returncode == 0
    assert "nothing in it" in sound.stdout


def test_unknown_text_is_not_guessed_at_but_shown(home: Home) -> None:
    done = explain(home, "Traceback (most recent call last):\nMyOwnError: the frobnicator is out of cheese\n")
    assert done.returncode == 0
    assert "not known" in done.stdout
    assert "frobnicator" in done.stdout


def test_files_and_folders_are_read_with_their_names(home: Home, tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "stderr.log").write_text(OOM)
    report = found(home, "", str(tmp_path))
    assert report["findings"][0]["evidence"][0]["file"] == "1/stderr.log"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_a_kind_is_printed_in_both_languages(home: Home, language: str) -> None:
    done = explain(home, "", "driver-too-old", "--lang", language)
    assert done.returncode == 0, done.stderr
    assert "driver-too-old" in done.stdout
    assert ("修复" in done.stdout) == (language == "zh")


def test_the_language_comes_from_the_locale(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchdeck", "explain", "oom-capacity"], env={**home.env, "LC_ALL": "zh_CN.UTF-8"},
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "修复" in done.stdout


def test_kinds_can_be_listed_and_searched(home: Home) -> None:
    everything = json.loads(explain(home, "", "--list", "--json").stdout)["kinds"]
    assert len(everything) >= 153
    some = json.loads(explain(home, "", "--search", "fragment", "--json").stdout)["kinds"]
    assert "oom-fragmentation" in {kind["id"] for kind in some}
    assert len(some) < len(everything)


def test_a_misspelt_kind_names_the_nearest(home: Home) -> None:
    done = explain(home, "", "driver-to-old")
    assert done.returncode == 2
    assert "driver-too-old" in done.stderr


def test_facts_decide_between_causes_that_print_the_same(home: Home) -> None:
    text = "RuntimeError: Found no NVIDIA driver on your system.\n"
    hosts = Path(__file__).parent.parent / "hosts"
    rules = {
        name: found(home, text, "--facts", str(hosts / f"{name}.json"))["findings"][0]["rule"]
        for name in ("no_driver", "docker_without_gpus")
    }
    assert rules == {"no_driver": "host-driver-missing", "docker_without_gpus": "gpu-not-passed-to-container"}


def test_markdown_can_be_pasted(home: Home) -> None:
    assert "**error[oom-fragmentation]" in explain(home, OOM, "--md").stdout


def test_no_log_and_a_missing_file_exit_with_2(home: Home) -> None:
    assert explain(home, "", "/no/such/file.log").returncode == 2
