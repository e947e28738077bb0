"""``torchdeck exec``: the command's own exit code, in the deck's environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Home


@pytest.fixture
def deck(home: Home) -> Home:
    """A user with a deck whose environment holds no torch: exec does not look for one."""
    from torchdeck.environment.deck.state import DeckState, write_atomic

    folder = home.folder / "data" / "torchdeck" / "decks" / "project"
    environment = folder / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    mine = environment / "bin" / "only-in-the-deck"
    mine.write_text('#!/bin/sh\necho "$VIRTUAL_ENV"\n')
    mine.chmod(0o755)
    state = DeckState(
        name="project",
        project=str(home.project),
        environment=str(environment),
        ready=True,
        proven=True,
        torch="2.6.0",
        variant="cu124",
        python="3.11.7",
    )
    import msgspec

    write_atomic(folder / "deck.json", msgspec.json.encode(state))
    return home


@pytest.mark.parametrize("code", [0, 1, 3, 125, 255])
def test_the_commands_exit_code_is_passed_on(deck: Home, code: int) -> None:
    """Whatever it is, it is the command's."""
    assert deck.run("exec", "--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_is_passed_on_as_a_shell_says_it(deck: Home, sig: signal.Signals) -> None:
    """A command that a signal ended gives 128 and the signal's number."""
    assert deck.run("exec", "--", "sh", "-c", f"ulimit -c 0; kill -{sig.value} $$").returncode == 128 + sig


def test_a_command_that_is_not_there_gives_127(deck: Home) -> None:
    """And the error names it; one that may not be executed gives 126."""
    done = deck.run("exec", "--", "no-such-command")
    assert done.returncode == 127
    assert "no-such-command" in done.stderr
    file = deck.project / "not-executable"
    file.write_text("text")
    assert deck.run("exec", "--", "./not-executable").returncode == 126


def test_a_command_of_the_deck_is_found_first(deck: Home) -> None:
    """Its bin folder leads PATH; its variables are set; another environment's are gone."""
    done = deck.run("exec", "only-in-the-deck")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("/project/env")
    env = {**deck.env, "PYTHONHOME": "", "JUPYTER_PATH": "/elsewhere", "UV_PYTHON": "3.9"}
    shown = deck.run("exec", "--", "env", env=env).stdout
    assert "TORCHDECK_DECK=project" in shown
    assert "TORCHINDUCTOR_CACHE_DIR=" in shown
    for foreign in ("JUPYTER_PATH=", "UV_PYTHON=", "PYTHONHOME="):
        assert foreign not in shown


def test_options_of_the_command_are_its_own(deck: Home) -> None:
    """Nothing after the command's name is taken for an option of ours, with -- or without."""
    assert deck.run("exec", "echo", "--name", "x", "--help").stdout == "--name x --help\n"
    assert deck.run("exec", "--", "echo", "--project", "--").stdout == "--project --\n"


def test_input_and_output_are_the_terminals(deck: Home) -> None:
    """What goes in comes out, bytes and all; standard error stays apart."""
    process = deck.popen("exec", "--", "sh", "-c", "cat; echo aside >&2", stdin=subprocess.PIPE)
    assert process.communicate("línea\n", timeout=30) == ("línea\n", "aside\n")


def test_a_termination_is_handed_on(deck: Home) -> None:
    """SIGTERM to torchdeck ends the command, not torchdeck alone: nothing is left running."""
    process = deck.popen("exec", "--", "sh", "-c", "echo $$; exec sleep 60", stdout=subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.terminate()
    assert process.wait(timeout=20) == 128 + signal.SIGTERM
    process.communicate()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()


def test_ctrl_c_reaches_the_command_and_its_code_is_passed_on(deck: Home) -> None:
    """A program that handles SIGINT ends in its own way, with its own code."""
    script = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    process = deck.popen("exec", "--", "sh", "-c", script, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process in the foreground
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (7, "caught\n"), stderr
    assert "Traceback" not in stderr


def test_torchdecks_own_failures_are_125(home: Home) -> None:
    """No deck, or one that is not complete: a code that a command hardly uses, and the words why."""
    done = home.run("exec", "true")
    assert done.returncode == 125
    assert "torchdeck up" in done.stderr
    assert home.run("exec", "--project", str(home.project / "missing"), "true").returncode == 125
    assert home.run("exec").returncode == 2


def test_an_incomplete_deck_runs_nothing(deck: Home) -> None:
    """The state says that an installation is under way: 125, and the command was not started."""
    file = deck.folder / "data" / "torchdeck" / "decks" / "project" / "deck.json"
    file.write_text(file.read_text().replace('"ready":true', '"ready":false'))
    done = deck.run("exec", "--", "touch", "started")
    assert done.returncode == 125
    assert "not complete" in done.stderr
    assert not (deck.project / "started").exists()


@pytest.mark.deck
def test_torch_is_there_in_a_real_deck(deck_home: Home) -> None:
    """python, pip and a program of one's own run on the deck's torch."""
    done = deck_home.run("exec", "--", "python", "-c", "import torch; print(torch.__version__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2.6.0")
    assert deck_home.run("exec", "--", "python", "-c", "raise SystemExit(3)").returncode == 3
