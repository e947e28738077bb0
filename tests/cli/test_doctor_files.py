"""``torchdeck doctor FILE``: files instead of a machine, and files that cannot be judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Home

BAD = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.6.0 torchvision==0.20.1\n"
GOOD = "FROM python:3.12\nRUN pip install --no-cache-dir torch==2.6.0 torchvision==0.21.0\n"


def test_a_finding_names_file_and_line_and_errors_exit_with_1(home: Home) -> None:
    (home.project / "Dockerfile").write_text(BAD)
    done = home.run("doctor", "Dockerfile")
    assert done.returncode == 1
    assert "error[torchvision-mismatch]" in done.stdout
    assert "\n  at      Dockerfile:2\n" in done.stdout
    assert "driver  " not in done.stdout  # no facts of this machine


def test_a_sound_file_exits_with_0(home: Home) -> None:
    (home.project / "Containerfile").write_text(GOOD)
    done = home.run("doctor", "Containerfile")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing found" in done.stdout


def test_warnings_exit_with_1_only_when_strict(home: Home) -> None:
    (home.project / "compose.yaml").write_text("services: {a: {ports: ['8888:8888']}}\n")
    assert home.run("doctor", "compose.yaml").returncode == 0
    assert home.run("doctor", "compose.yaml", "--strict").returncode == 1


def test_json_keeps_its_schema_and_says_where(home: Home) -> None:
    (home.project / "Dockerfile").write_text(BAD)
    report = json.loads(home.run("doctor", "--json", "Dockerfile").stdout)
    assert report["schema"] == "torchdeck.findings/1"
    assert report["findings"][0]["where"] == "Dockerfile:2"


def test_markdown_says_where(home: Home) -> None:
    (home.project / "Dockerfile").write_text(BAD)
    done = home.run("doctor", "--md", "Dockerfile")
    assert "| error | `torchvision-mismatch` | Dockerfile:2: " in done.stdout
    assert "| fact |" not in done.stdout


def test_of_a_folder_the_known_files_directly_in_it_are_judged(home: Home) -> None:
    (home.project / "Dockerfile").write_text(BAD)
    (home.project / "requirements.txt").write_text("torch==2.6.0\ntriton==3.1.0\n")
    (home.project / "notes.md").write_text("# no\n")
    (home.project / "below").mkdir()
    (home.project / "below" / "Dockerfile").write_text("FROM ubuntu\nEXPOSE 22\nRUN pip install torch>=2\n")
    (home.project / ".devcontainer").mkdir()
    (home.project / ".devcontainer" / "devcontainer.json").write_text('{"image": "pytorch/pytorch:latest"}')
    report = json.loads(home.run("doctor", "--json", ".").stdout)
    places = {finding["where"] for finding in report["findings"]}
    assert "requirements.txt:2" in places
    assert "Dockerfile:2" in places
    assert ".devcontainer/devcontainer.json:1" in places
    assert not any("below" in place for place in places)
    severities = [finding["severity"] for finding in report["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "unknown", "info"].index)


def test_a_file_named_twice_is_judged_once(home: Home) -> None:
    (home.project / "Dockerfile").write_text(BAD)
    once = home.run("doctor", "--json", "Dockerfile").stdout
    assert home.run("doctor", "--json", "Dockerfile", "Dockerfile").stdout == once


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("Dockerfile", b"FROM a\xff\xfe", "not UTF-8 text"),
        ("Dockerfile", b"FROM a\0", "is not text"),
        ("requirements.txt", b"torch\n" * 400_000, "too large"),
        ("compose.yaml", b"a: [", "not valid YAML"),
        ("pyproject.toml", b"[project", "not valid TOML"),
        ("devcontainer.json", b"{", "not valid JSON"),
        ("notes.md", b"# hello\n", "of no kind that is judged"),
    ],
)
def test_what_cannot_be_judged_exits_with_2_and_says_why(home: Home, name: str, content: bytes, said: str) -> None:
    (home.project / name).write_bytes(content)
    done = home.run("doctor", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_not_there_and_folders_without_any_exit_with_2(home: Home, tmp_path: Path) -> None:
    assert home.run("doctor", "absent/Dockerfile").returncode == 2
    (tmp_path / "empty").mkdir()
    done = home.run("doctor", str(tmp_path / "empty"))
    assert done.returncode == 2
    assert "compose.yaml" in done.stderr
    assert home.run("doctor", "/dev/null").returncode == 2


def test_files_and_a_machine_exclude_each_other(home: Home) -> None:
    (home.project / "Dockerfile").write_text(GOOD)
    for more in (["--facts", "host.json"], ["--save", "host.json"], ["--python", "python3"]):
        done = home.run("doctor", "Dockerfile", *more)
        assert done.returncode == 2
    assert not (home.project / "host.json").exists()


def test_a_byte_order_mark_is_no_part_of_the_text(home: Home) -> None:
    (home.project / "Dockerfile").write_bytes(b"\xef\xbb\xbf" + BAD.encode())
    assert "Dockerfile:2" in home.run("doctor", "Dockerfile").stdout


def test_control_codes_in_a_file_do_not_reach_the_terminal(home: Home) -> None:
    (home.project / "Dockerfile").write_text("FROM a:1\nENV NVIDIA_DRIVER_CAPABILITIES=x\x1b]0;t\x07\n")
    done = home.run("doctor", "Dockerfile")
    assert "nvidia-env-incomplete" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
