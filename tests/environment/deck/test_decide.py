"""Which torch a project gets from the lock that somebody committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdeck.environment.deck.decide import release_of, shared_lock
from torchdeck.environment.deck.spec import DeckSpec
from torchdeck.environment.lock import LOCK_NAME, Lock, LockHead, render_lock


def project(tmp_path: Path, torch: str) -> DeckSpec:
    head = LockHead(torch=torch, variant="cu126", python="3.11", platform="linux-x86_64", inputs="0")
    (tmp_path / LOCK_NAME).write_text(render_lock(Lock(head=head, packages=())))
    return DeckSpec(project=tmp_path)


def test_the_release_in_the_projects_lock_is_what_everyone_gets(tmp_path: Path) -> None:
    spec = project(tmp_path, "2.7.1")
    assert release_of(spec, shared_lock(spec)) == "2.7.1"


def test_a_wish_of_ones_own_wins_over_the_lock(tmp_path: Path) -> None:
    spec = project(tmp_path, "2.7.1")
    asked = DeckSpec(project=tmp_path, stack="2.6")
    assert release_of(asked, shared_lock(spec)) == "2.6"


@pytest.mark.parametrize("content", [b"", b"# torchdeck-lock 9\n", b"\xff\xfe", b"numpy==1.0\n"])
def test_a_damaged_lock_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK_NAME).write_bytes(content)
    spec = DeckSpec(project=tmp_path)
    assert release_of(spec, shared_lock(spec)) == ""


def test_a_release_that_the_catalogue_does_not_know_is_not_asked_for(tmp_path: Path) -> None:
    spec = project(tmp_path, "2.3.0")
    assert release_of(spec, shared_lock(spec)) == ""


def test_a_second_deck_beside_the_projects_own_does_not_follow_the_lock(tmp_path: Path) -> None:
    project(tmp_path, "2.7.1")
    assert shared_lock(DeckSpec(project=tmp_path, name="other-deck")) is None
