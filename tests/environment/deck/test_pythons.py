"""Decks on other Pythons than the one that runs torchdeck, where this machine has them."""

from __future__ import annotations

import pytest
from conftest import Home

from torchdeck.environment.deck.pythons import find_python
from torchdeck.errors import UsageError


@pytest.mark.deck
@pytest.mark.full
@pytest.mark.parametrize("python", ["3.10", "3.12", "3.13"])
def test_the_reference_stack_verifies_on_another_python(home: Home, python: str) -> None:
    if find_python(python) is None:
        pytest.skip(f"there is no Python {python} on this machine")
    report = home.json("up", "--no-lab", "--python", python, timeout_s=1500)
    assert report["python"].startswith(python)
    assert report["torch"] == "2.6.0"
    assert report["proof"]["passed"]
    done = home.run("exec", "--", "torchdeck", "--version")
    assert done.returncode == 0, done.stderr


@pytest.mark.deck
@pytest.mark.full
def test_a_deck_is_made_anew_for_another_python(home: Home) -> None:
    if find_python("3.12") is None:
        pytest.skip("there is no Python 3.12 on this machine")
    home.json("up", "--no-lab", timeout_s=1500)
    report = home.json("up", "--no-lab", "--python", "3.12", timeout_s=1500)
    assert report["python"].startswith("3.12")
    assert report["proof"]["passed"]


@pytest.mark.parametrize("wanted", ["2.7", "python3", "3.x", "", "/nonexistent/python", "/bin/true"])
def test_what_is_no_python_is_a_usage_error(wanted: str) -> None:
    with pytest.raises(UsageError):
        find_python(wanted)


def test_a_python_that_is_nowhere_is_not_found() -> None:
    assert find_python("3.99") is None
