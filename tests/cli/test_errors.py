"""What a user gets to see when something is wrong: words, an exit code of the contract, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Home


def _fails(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "bug in torchdeck" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("typed", "meant"), [("pu", "up"), ("statsu", "status"), ("verfy", "verify"), ("dcotor", "doctor")]
)
def test_a_misspelt_command_names_the_nearest(home: Home, typed: str, meant: str) -> None:
    """Exit 2 and the command that was meant."""
    _fails(home.run(typed), 2, f"No such command {typed!r}", f"Did you mean {meant!r}?")


def test_an_unlike_command_and_a_wrong_option_are_refused(home: Home) -> None:
    """Exit 2; a misspelt option names the nearest too."""
    _fails(home.run("xyzzy"), 2, "No such command")
    _fails(home.run("up", "--stakc", "2.7"), 2, "--stakc", "--stack")
    _fails(home.run("up", "--port", "many"), 2, "--port")


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_planned_engine_says_not_yet(home: Home, engine: str) -> None:
    """Exit 2, which engine there is, and nothing is done."""
    _fails(home.run("up", "--engine", engine), 2, "not built yet", "torchdeck up --engine venv")
    assert not (home.folder / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "vagrant"], "no engine 'vagrant'"),
        (["--port", "0"], "0 is not a port"),
        (["--port", "70000"], "70000 is not a port"),
        (["--name", "Bad Name"], "cannot be the name of a deck"),
        (["--name", "../up"], "cannot be the name of a deck"),
        (["--python", "two"], "two"),
        (["--python", "/nonexistent/python"], "/nonexistent/python"),
        (["--requirements", "missing.txt"], "missing.txt does not exist"),
        (["--stack", "hello"], "hello"),
    ],
)
def test_a_wrong_wish_is_refused_before_anything_is_done(home: Home, arguments: list[str], words: str) -> None:
    """Exit 2 with the wish in the error; no environment is begun."""
    _fails(home.run("up", *arguments), 2, words)
    assert list(home.folder.glob("data/torchdeck/decks/*/env")) == []


def test_a_project_folder_that_is_not_there_is_named(home: Home) -> None:
    """Exit 2 with the command that makes it; a file is no folder."""
    missing = home.project / "nowhere"
    _fails(home.run("up", "--project", str(missing)), 2, str(missing), "mkdir -p")
    (home.project / "file").write_text("")
    _fails(home.run("up", "--project", str(home.project / "file")), 2, "file")


def test_a_current_folder_that_was_deleted_is_named(home: Home) -> None:
    """As after `rm -r` in another terminal."""
    gone = home.project / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -P -m torchdeck up'
    if sys.version_info < (3, 11):
        script = script.replace(" -P ", " ")
    # Python itself does not start there with a relative path in this variable.
    paths = [str(Path(path).absolute()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    env = {**home.env, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    _fails(done, 2, "no longer exists", "cd to another folder")


@pytest.mark.parametrize("command", ["down", "logs", "verify", "rm", "upgrade"])
def test_a_command_without_a_deck_names_the_command_that_makes_one(home: Home, command: str) -> None:
    """Exit 2; status alone is content, and says that there is none."""
    _fails(home.run(command), 2, "there is no deck", "torchdeck up")
    done = home.run("status")
    assert (done.returncode, "torchdeck up" in done.stdout) == (0, True)
    assert home.json("status")["decks"] == []


@pytest.mark.parametrize("arguments", [["--help"], ["config"], ["config", "--json"], ["up", "--help"]])
def test_a_reader_that_went_away_is_no_error(home: Home, arguments: list[str]) -> None:
    """``torchdeck … | head -1`` ends in silence."""
    process = home.popen(*arguments, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()  # nobody reads
    assert process.stderr is not None
    stderr = process.stderr.read()
    assert (process.wait(timeout=30), stderr) == (0, "")


def test_a_full_device_for_the_output_is_said(home: Home) -> None:
    """The answer could not be written: that is no success."""
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = home.run("config", stdout=full)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_ctrl_c_is_130_and_says_interrupted(home: Home) -> None:
    """SIGINT to ``up`` at work: no traceback, and what it had started is ended."""
    process = home.popen("up", env={**home.env, "UV_CACHE_DIR": str(home.folder / "uv")})
    assert process.stderr is not None
    seen = ""
    while "…" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, seen + stderr
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    import psutil

    def left() -> list[list[str]]:
        lines = [other.info["cmdline"] or [] for other in psutil.process_iter(["cmdline"])]
        return [line for line in lines if any(str(home.folder) in word for word in line)]

    deadline = time.monotonic() + 10
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left() == []
    assert home.json("status")["decks"][0]["state"] == "incomplete"


def test_our_own_bug_is_3_with_a_trace_in_a_file(home: Home, tmp_path: Path) -> None:
    """The user sees one line and the path of the trace, in which the home folder is folded."""
    breaking = tmp_path / "breaking"
    breaking.mkdir()
    (breaking / "sitecustomize.py").write_text(
        "import torchdeck.settings as s\ndef load(*a, **k):\n    raise RuntimeError('boom')\ns.load = load\n"
    )
    path = os.pathsep.join([str(breaking), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**home.env, "PYTHONPATH": path, "HOME": str(tmp_path)}
    done = home.run("config", env=env)
    assert done.returncode == 3, done.stderr
    assert "bug in torchdeck (RuntimeError: boom)" in done.stderr
    (trace,) = (home.folder / "cache" / "torchdeck" / "traces").iterdir()
    assert str(trace) in done.stderr
    text = trace.read_text()
    assert "RuntimeError: boom" in text
    assert "~/breaking/sitecustomize.py" in text
    assert str(tmp_path) not in text


def test_a_dry_run_changes_nothing(home: Home) -> None:
    """It prints every command of the plan, as JSON too, and leaves no file behind."""
    plan = home.json("up", "--dry-run")
    names = [step["name"] for step in plan["steps"]]
    assert names[-1] == "lab"
    assert {"resolve", "environment", "install", "torchdeck", "files", "verify"} <= set(names)
    assert "torchdeck-plan-" not in json.dumps(plan)
    assert "uv venv" in home.run("up", "--dry-run").stdout
    assert list(home.project.iterdir()) == []
    assert not (home.folder / "data").exists()
