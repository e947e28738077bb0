"""The plan of a deck, compared with what it was: a change of any command shows here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchdeck import __version__
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.plan import Plan, plan_venv

GOLDEN = Path(__file__).parent / "golden"


def plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {
        "python": Path("/usr/bin/python3.11"),
        "backend": "",
        "unlocked": [],
        "lock_file": Path("/home/ada/digits/torchdeck.lock"),
        "have_lock": False,
        "notebooks": Path("/home/ada/digits/notebooks"),
        "host": "127.0.0.1",
        "port": 8888,
    }
    folder = Path("/home/ada/.local/share/torchdeck/decks/digits")
    return plan_venv(DeckPaths(folder, folder / "env"), **{**values, **changes})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("new", {}),
        ("with_lock", {"have_lock": True}),
        ("own_index", {"backend": "cu126"}),
        ("unlocked", {"unlocked": ["-e .", "git+ssh://host/repo@v1"], "host": "0.0.0.0", "port": 9000}),
    ],
)
def test_the_plan_is_what_it_was(name: str, changes: dict[str, Any]) -> None:
    """Set ``TORCHDECK_TEST_GOLDEN=write`` to accept a change, and read the diff."""
    text = json.dumps(msgspec.to_builtins(plan(**changes)), indent=2).replace(__version__, "VERSION") + "\n"
    file = GOLDEN / f"plan_{name}.json"
    if os.environ.get("TORCHDECK_TEST_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()


def test_a_lock_that_answers_the_request_leaves_nothing_to_resolve() -> None:
    assert [step.name for step in plan(have_lock=True).steps] == [
        "environment", "install", "torchdeck", "files", "verify", "lab"
    ]  # fmt: skip


def test_no_command_of_a_plan_holds_a_token() -> None:
    assert not any("token" in word for step in plan().steps for word in step.argv)
