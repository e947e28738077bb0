"""``torchdeck up`` for real: one address that stays, one JupyterLab, nothing done twice."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import Home

pytestmark = pytest.mark.deck


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _get(url: str) -> int:
    """Return the status of a page, redirects not followed, no proxy asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    try:
        with opener.open(url, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def _state(user: Home, name: str) -> Any:
    return json.loads((user.folder / "data" / "torchdeck" / "decks" / name / "deck.json").read_text())


def _labs(user: Home) -> list[int]:
    """Return the process ids of every JupyterLab server of this user, those torchdeck forgot included."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "jupyterlab" in line and any(str(user.folder.parent) in word for word in line):
            found.append(process.pid)
    return found


def _port(address: str) -> int:
    return int(address.split("/lab", maxsplit=1)[0].rsplit(":", 1)[1])


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A user whose project has a space in its path."""
    folder = tmp_path_factory.mktemp("up")
    user = Home(folder / "home", folder / "my projects" / "digits")
    user.project.mkdir(parents=True)
    yield user
    user.stop_everything()
    assert _labs(user) == []


@pytest.fixture(scope="module")
def both(user: Home) -> list[dict[str, Any]]:
    """The answers of two ``up`` at the same time, for a user who has nothing yet."""
    started = [user.popen("up", "--json") for _ in range(2)]
    ended = [process.communicate(timeout=800) for process in started]
    assert [process.returncode for process in started] == [0, 0], [stderr for _, stderr in ended]
    return [json.loads(stdout) for stdout, _ in ended]


def test_two_ups_at_once_make_one_deck_with_one_lab(user: Home, both: list[dict[str, Any]]) -> None:
    """The second waits, finds the work done and prints the same address."""
    assert both[0]["address"] == both[1]["address"]
    assert sorted(report["did"] for report in both) == [[], ["installed", "started JupyterLab"]]
    assert len(_labs(user)) == 1
    assert _labs(user) == [_state(user, "digits")["lab"]["pid"]]


def test_a_new_deck_is_proven_and_says_which_torch_it_has(both: list[dict[str, Any]]) -> None:
    """The proof holds what torch says of itself against the lock."""
    proof = next(report["proof"] for report in both if report["proof"])
    assert proof["passed"]
    assert proof["torch"].split("+")[0] == both[0]["torch"] == "2.6.0"
    assert {check["name"]: check["outcome"] for check in proof["checks"]}["versions"] == "pass"


def test_the_address_answers_with_its_token_only(both: list[dict[str, Any]]) -> None:
    """Whoever has the address gets in; whoever has not is refused or asked to log in."""
    address = both[0]["address"]
    base, token = address.split("/lab?token=")
    assert _get(address) == 200
    assert _get(f"{base}/api/kernels?token={token}") == 200
    assert _get(f"{base}/api/kernels") == 403
    assert _get(f"{base}/api/kernels?token={'0' * len(token)}") == 403
    assert _get(f"{base}/lab") == 302


def test_the_token_is_the_owners_secret(user: Home, both: list[dict[str, Any]]) -> None:
    """It stands in no argument list, in no log and in no file that others may read."""
    token = both[0]["address"].split("token=")[1]
    deck = user.folder / "data" / "torchdeck" / "decks" / "digits"
    line = psutil.Process(_state(user, "digits")["lab"]["pid"]).cmdline()
    assert not any(token in word for word in line)
    files = [path for path in deck.rglob("*") if path.is_file() and "env" not in path.relative_to(deck).parts]
    having = [file for file in files if token.encode() in file.read_bytes()]
    assert deck / "lab" / "token" in having
    for file in having:
        assert file.is_relative_to(deck / "lab")
        assert file.suffix != ".log"
    for closed in (deck, deck / "lab", deck / "lab" / "token"):
        assert closed.stat().st_mode & 0o077 == 0, closed


def test_a_second_up_does_nothing_and_prints_the_same_address(user: Home, both: list[dict[str, Any]]) -> None:
    """In under ten seconds, with the same JupyterLab and no file of the environment touched."""
    before = _state(user, "digits")
    log = user.folder / "data" / "torchdeck" / "decks" / "digits" / "install.log"
    size = log.stat().st_size
    started = time.monotonic()
    again = user.json("up")
    assert time.monotonic() - started < 10
    assert again["did"] == []
    assert again["proof"] is None
    assert again["address"] == both[0]["address"]
    assert _state(user, "digits") == before
    assert log.stat().st_size == size


def test_status_says_running_with_the_address(user: Home, both: list[dict[str, Any]]) -> None:
    """Both for a person and as JSON; after down it says stopped."""
    (deck,) = user.json("status")["decks"]
    assert (deck["state"], deck["address"], deck["torch"]) == ("running", both[0]["address"], "2.6.0")
    assert both[0]["address"] in user.run("status").stdout


def test_the_first_notebook_is_there_and_the_lock_is_shared(user: Home, both: list[dict[str, Any]]) -> None:
    """A new working folder has something to open, and a colleague gets the same packages."""
    assert [path.name for path in Path(both[0]["notebooks"]).glob("*.ipynb")] == ["first_steps.ipynb"]
    assert "torch==2.6.0" in (user.project / "torchdeck.lock").read_text()


def test_down_and_up_give_the_same_address(user: Home, both: list[dict[str, Any]]) -> None:
    """A bookmark stays good: the port and the token are kept."""
    assert user.run("down").returncode == 0
    assert _labs(user) == []
    assert user.json("status")["decks"][0]["state"] == "stopped"
    assert "was not running" in user.run("down").stdout
    again = user.json("up")
    assert again["did"] == ["started JupyterLab"]
    assert again["address"] == both[0]["address"]


def test_two_ups_at_once_on_a_stopped_deck_start_one_lab(user: Home, both: list[dict[str, Any]]) -> None:
    """Two terminals, one JupyterLab."""
    assert user.run("down").returncode == 0
    started = [user.popen("up", "--json") for _ in range(2)]
    reports = [json.loads(process.communicate(timeout=200)[0]) for process in started]
    assert {report["address"] for report in reports} == {both[0]["address"]}
    assert len(_labs(user)) == 1


def test_a_taken_port_gives_another_one_and_says_so(user: Home, both: list[dict[str, Any]]) -> None:
    """The note names both ports; the new port is kept from then on."""
    assert user.run("down").returncode == 0
    taken = _port(both[0]["address"])
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", taken))
        other.listen()
        done = user.run("up")
    assert done.returncode == 0, done.stderr
    (deck,) = user.json("status")["decks"]
    assert _port(deck["address"]) != taken
    assert f"port {taken} is taken" in done.stderr
    assert str(_port(deck["address"])) in done.stderr
    assert _get(deck["address"]) == 200
    assert user.json("up")["address"] == deck["address"]


def test_a_named_deck_lives_beside_the_projects_own(user: Home, both: list[dict[str, Any]]) -> None:
    """In a folder of its own with spaces in its path; rm takes it away whole and leaves the notebooks and the other."""
    lock = (user.project / "torchdeck.lock").read_bytes()
    (user.project / "side notes").mkdir()
    (user.project / "side notes" / "mine.ipynb").write_text('{"cells": [], "metadata": {}}')
    folder = user.folder / "a large disk" / "side env"
    side = user.json("up", "--name", "side", "--dir", str(folder), "--notebooks", "side notes")
    assert side["environment"] == str(folder)
    assert _get(side["address"]) == 200
    assert side["address"] != both[0]["address"]
    done = user.run("exec", "--name", "side", "--", "python", "-c", "import sys, torch; print(sys.prefix)")
    assert done.stdout.strip() == str(folder), done.stderr
    # The commands in its bin folder, which uv writes, run from a path with spaces too.
    assert user.run("exec", "--name", "side", "--", "pip", "--version").returncode == 0
    assert (user.project / "torchdeck.lock").read_bytes() == lock
    assert [path.name for path in (user.project / "side notes").glob("*.ipynb")] == ["mine.ipynb"]
    assert user.json("status")["decks"][0]["name"] == "digits"
    assert {deck["name"]: deck["state"] for deck in user.json("status", "--all")["decks"]}["side"] == "running"
    # Without an explicit --dir, and without the notebooks, it stays as it is.
    assert user.json("up", "--name", "side")["did"] == []

    refused = user.run("rm", "--name", "side")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert user.run("rm", "--name", "side", "--purge", "--yes").returncode == 0
    assert not folder.exists()
    assert (user.project / "side notes" / "mine.ipynb").is_file()
    assert {deck["name"] for deck in user.json("status", "--all")["decks"]} == {"digits"}
    # The compile cache belongs to the build, which the other deck has too.
    assert user.json("up")["did"] == []


def test_rm_takes_the_deck_and_its_caches_and_leaves_what_the_user_wrote(user: Home) -> None:
    """The last test of this file: nothing of the deck is left, its JupyterLab is stopped, the project is whole."""
    done = user.run("rm", "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert _labs(user) == []
    assert list((user.folder / "data" / "torchdeck" / "decks").iterdir()) == []
    assert list((user.folder / "cache" / "torchdeck").rglob("inductor")) == []
    assert {path.name for path in user.project.iterdir()} >= {"notebooks", "torchdeck.lock", "side notes"}
    assert (user.project / "notebooks" / "first_steps.ipynb").is_file()
    assert user.json("status")["decks"] == []
    assert user.run("rm", "--yes").returncode == 2
