"""The state on disk: whole or not at all, one writer at a time."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdeck.environment.deck import state as room
from torchdeck.environment.deck.paths import check_name, name_from
from torchdeck.environment.deck.state import (
    DeckState,
    LabState,
    changing,
    deck_of,
    list_decks,
    load_state,
    paths_of,
    require_deck,
    save_state,
    write_atomic,
)
from torchdeck.errors import OutsideError, UsageError


def _state(name: str, project: Path) -> DeckState:
    return DeckState(name=name, project=str(project), environment=str(paths_of(name).environment))


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Every field survives, the started JupyterLab too."""
    lab = LabState(pid=4, created=1.5, host="127.0.0.1", port=8888)
    state = _state("a", tmp_path).but(lab=lab, ready=True, asked={"stack": "2.7", "packages": ["einops"]})
    save_state(state)
    assert load_state("a") == state


def test_a_damaged_state_is_no_state_and_a_later_one_is_an_error(tmp_path: Path) -> None:
    """Garbage is made anew by the next up; a later torchdeck's deck is not touched."""
    save_state(_state("a", tmp_path))
    file = paths_of("a").state
    file.write_bytes(file.read_bytes()[:40])
    assert load_state("a") is None
    file.write_text('{"schema": "torchdeck.deck/9"}')
    with pytest.raises(UsageError, match="another torchdeck"):
        load_state("a")


def test_a_writer_killed_at_any_point_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    """Sixty writers are killed at moving moments; what is read is always one whole state."""
    target = tmp_path / "state.json"
    old, new = "o" * 200_000, "n" * 200_000
    program = (
        "import sys; from pathlib import Path; from torchdeck.environment.deck.state import write_atomic\n"
        f"p = Path({str(target)!r}); print('ready', flush=True)\n"
        f"while True: write_atomic(p, 'n' * 200_000); write_atomic(p, 'o' * 200_000)"
    )
    write_atomic(target, old)
    for number in range(12):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert target.read_text() in (old, new)


def test_a_write_that_fails_leaves_the_old_file_and_no_scraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full while writing loses nothing."""
    target = tmp_path / "file"
    write_atomic(target, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_two_processes_never_hold_a_deck_at_the_same_time(tmp_path: Path) -> None:
    """The second waits, is told who holds it, and gives up after its time with the process's number."""
    program = (
        "import time; from torchdeck.environment.deck.state import changing, paths_of\n"
        "with changing(paths_of('a')): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    told: list[str] = []
    try:
        with pytest.raises(OutsideError, match="being changed") as caught, changing(paths_of("a"), told.append, 0.3):
            pytest.fail("both hold it")
        assert str(process.pid) in caught.value.mend[0]
        assert told == [str(process.pid)]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    with changing(paths_of("a"), wait_s=1.0):
        pass  # a killed holder holds nothing


def test_each_project_finds_its_own_deck(tmp_path: Path) -> None:
    """Two folders of the same name get two decks; each finds its own again."""
    one, two = tmp_path / "x" / "Train Me", tmp_path / "y" / "Train Me"
    save_state(_state(deck_of(one), one))
    save_state(_state(deck_of(two), two))
    assert list_decks() == ["train-me", "train-me-2"]
    assert deck_of(one) == "train-me"
    assert deck_of(two) == "train-me-2"


def test_a_deck_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    """The error says what there is, and the command that makes one."""
    save_state(_state("other", tmp_path / "elsewhere"))
    with pytest.raises(UsageError) as caught:
        require_deck(tmp_path / "here")
    assert caught.value.found == "decks: other"
    assert caught.value.mend[0] == "torchdeck up"


@given(st.text(max_size=80))
def test_a_deck_never_gets_a_name_that_leaves_its_folder(text: str) -> None:
    """Whatever a project or a user is called, the name is a plain one or refused."""
    assert check_name(name_from(Path("/p") / text.replace("/", "_").replace("\0", "_")))
    try:
        name = check_name(text)
    except UsageError:
        return
    assert "/" not in name
    assert not name.startswith(".")


def test_a_deck_that_was_only_begun_is_called_incomplete_not_absent(tmp_path: Path) -> None:
    project = tmp_path / "begun"
    project.mkdir()
    paths = paths_of("begun")
    paths.folder.mkdir(parents=True)
    paths.owner.write_text(f"{project}\n")
    with pytest.raises(UsageError, match="not complete") as caught:
        require_deck(project)
    assert caught.value.mend[0] == "torchdeck up"
