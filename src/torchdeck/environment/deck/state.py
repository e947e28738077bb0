"""A deck's state on disk: readable JSON, written whole or not at all, changed by one process at a time.

What is found after ``kill -9`` at any point is either the old state or the new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from torchdeck.environment.deck.paths import DeckPaths, check_name, decks_dir, name_from
from torchdeck.errors import OutsideError, UsageError

_SCHEMA = "torchdeck.deck/1"


class LabState(msgspec.Struct, frozen=True, kw_only=True):
    """A started JupyterLab.

    Args:
        pid: Its process id.
        created: When that process was created, in seconds since the epoch, to tell it from a later one of the same id.
        host: The address it listens on.
        port: Its port.
    """

    pid: int
    created: float
    host: str
    port: int


class DeckState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a deck.

    Args:
        ready: Whether the environment was installed to the end; False while that is under way.
        served: How JupyterLab was asked for when it was started.
        request: Digest of everything that was asked for; another one means there is something to do.
        own_wheel: Digest of the torchdeck that is in the environment.
        proven: Whether the last verification passed.
        port: The port that JupyterLab had last, which it gets again.
        asked: The request behind it, kept until something else is asked for.
    """

    schema: str = _SCHEMA
    name: str
    project: str
    environment: str
    engine: str = "venv"
    notebooks: str = ""
    served: str = ""
    ready: bool = False
    proven: bool = False
    request: str = ""
    own_wheel: str = ""
    torch: str = ""
    variant: str = ""
    cuda: str = ""
    index: str = ""
    python: str = ""
    triton: str = ""
    gpu: str = ""
    port: int | None = None
    asked: dict[str, Any] = {}
    lab: LabState | None = None

    def but(self, **changes: Any) -> DeckState:
        """Return this state with some fields changed."""
        return msgspec.structs.replace(self, **changes)


def paths_of(name: str, environment: str = "") -> DeckPaths:
    """Return where a deck of this name keeps things."""
    folder = decks_dir() / check_name(name)
    return DeckPaths(folder, Path(environment) if environment else folder / "env")


def write_atomic(path: Path, data: str | bytes, mode: int = 0o644) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: There is no space or no permission; the old file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def save_state(state: DeckState) -> None:
    """Write a deck's state."""
    document = msgspec.json.format(msgspec.json.encode(state), indent=2)
    write_atomic(paths_of(state.name, state.environment).state, document + b"\n")


def load_state(name: str) -> DeckState | None:
    """Read a deck's state; None if there is no such deck, or nothing readable is left of its state.

    Raises:
        UsageError: It was written by a later torchdeck.
    """
    path = paths_of(name).state
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        schema = msgspec.json.decode(raw, type=dict[str, Any]).get("schema")
        if schema != _SCHEMA:
            raise UsageError(
                f"the deck {name} was made by another torchdeck",
                found=str(schema),
                needs=_SCHEMA,
                mend="update torchdeck",
            )
        return msgspec.json.decode(raw, type=DeckState)
    except msgspec.MsgspecError:
        return None


def list_decks() -> list[str]:
    """Return the names of all decks, sorted."""
    try:
        return sorted(path.name for path in decks_dir().iterdir() if path.is_dir() and not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def deck_of(project: Path, name: str = "") -> str:
    """Return the name of a project's deck: the one asked for, the one it has, or the one it would get."""
    if name:
        return check_name(name)
    base, taken = name_from(project), set()
    for existing in list_decks():
        owner = owner_of(existing)
        if owner == str(project) and re.fullmatch(rf"{re.escape(base)}(-\d+)?", existing):
            return existing
        if owner is not None:
            taken.add(existing)
    wanted, number = base, 2
    while wanted in taken:
        wanted, number = f"{base}-{number}", number + 1
    return wanted


def owner_of(name: str) -> str | None:
    """Return the project of a deck, also of one whose state is damaged or not there yet; None if nobody knows."""
    try:
        return paths_of(name).owner.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")
    except OSError:
        pass
    try:
        state = load_state(name)
    except UsageError:
        return ""  # a later torchdeck's: somebody's, but not ours to touch
    return state.project if state else None


def claim_deck(project: Path, name: str = "") -> str:
    """Return the name of a project's deck and make its folder, so that no other project gets the same name.

    Raises:
        OSError: The folder cannot be made.
    """
    decks_dir().mkdir(parents=True, exist_ok=True)
    # No deck can be called so: this is the one lock over all names.
    with changing(DeckPaths(decks_dir() / ".names", Path())):
        wanted = deck_of(project, name)
        paths = paths_of(wanted)
        paths.folder.mkdir(exist_ok=True, mode=0o700)
        if owner_of(wanted) != str(project) or not paths.owner.is_file():
            write_atomic(paths.owner, f"{project}\n".encode("utf-8", "surrogateescape"))
    return wanted


def require_deck(project: Path, name: str = "") -> DeckState:
    """Return the state of a project's deck.

    Raises:
        UsageError: There is none.
    """
    wanted = deck_of(project, name)
    state = load_state(wanted)
    if state is None:
        others = list_decks()
        if wanted in others:
            raise UsageError(
                f"the deck {wanted} is not complete",
                found="an installation that did not get far",
                mend=("torchdeck up", "torchdeck logs --install"),
            )
        raise UsageError(
            f"there is no deck {wanted}" if name else f"there is no deck for {project}",
            found=f"decks: {', '.join(others)}" if others else "no deck at all",
            mend=("torchdeck up", *(["torchdeck status --all"] if others else [])),
        )
    return state


@contextlib.contextmanager
def changing(
    paths: DeckPaths, on_wait: Callable[[str], None] = lambda holder: None, wait_s: float = 3600.0
) -> Iterator[None]:
    """Hold a deck so that nobody else changes it; wait while another process does.

    Raises:
        OutsideError: The other process did not finish in time.
    """
    paths.guard.parent.mkdir(parents=True, exist_ok=True)
    with paths.guard.open("a+") as file:
        deadline, told = time.monotonic() + wait_s, False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                file.seek(0)
                holder = file.read(20).strip() or "?"
                if not told:
                    on_wait(holder)
                    told = True
                if time.monotonic() > deadline:
                    raise OutsideError(
                        f"the deck {paths.name} is being changed by another torchdeck",
                        found=f"process {holder} holds it",
                        mend=f"wait for it, or end it: kill {holder}",
                    ) from None
                time.sleep(0.1)
        with contextlib.suppress(OSError):  # a full disk must not keep anybody from stopping a deck
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield
