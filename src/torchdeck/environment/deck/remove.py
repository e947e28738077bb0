"""Stopping and removing a deck. Notebooks and the project are never touched."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from torchdeck.environment.cache.key import cache_folders
from torchdeck.environment.deck import lab
from torchdeck.environment.deck.files import key_of
from torchdeck.environment.deck.paths import DeckPaths, decks_dir
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.state import DeckState, LabState, changing, list_decks, load_state, paths_of, save_state
from torchdeck.errors import UsageError


def down(name: str, reporter: Reporter) -> bool:
    """Stop a deck's JupyterLab with its kernels; return whether one was running."""
    state = load_state(name)
    paths = paths_of(name, state.environment if state else "")
    with changing(paths, on_wait=lambda holder: reporter.note(f"waiting for another torchdeck (process {holder})")):
        state = load_state(name)
        if state is None:
            raise UsageError(f"there is no deck {name}", mend="torchdeck status --all")
        running = state.lab if lab.is_alive(state.lab) else _forgotten(paths)
        if running is not None:
            lab.stop(running)
        if state.lab is not None:
            save_state(state.but(lab=None))
        return running is not None


def _forgotten(paths: DeckPaths) -> LabState | None:
    return lab.find_running(paths, lab.token_of(paths)) if paths.token.is_file() else None


def remove(name: str, reporter: Reporter, *, purge: bool) -> list[str]:
    """Remove a deck: JupyterLab, environment, state; with ``purge`` also its compile caches. Return what was removed.

    A deck whose state is damaged can be removed too.

    Raises:
        UsageError: There is no such deck.
        OSError: Something may not be removed.
    """
    state = load_state(name)
    paths = paths_of(name, state.environment if state else "")
    if not paths.folder.is_dir():
        raise UsageError(f"there is no deck {name}", found=f"decks: {', '.join(list_decks()) or 'none'}")
    removed = []
    with changing(paths, on_wait=lambda holder: reporter.note(f"waiting for another torchdeck (process {holder})")):
        running = state.lab if state and lab.is_alive(state.lab) else _forgotten(paths)
        if running is not None:
            lab.stop(running)
        outside = paths.environment != paths.folder / "env"
        if outside and paths.marker.is_file() and paths.marker.read_text(encoding="utf-8").strip() == name:
            shutil.rmtree(paths.environment)
            removed.append(str(paths.environment))
        if purge and state is not None and state.torch:
            removed += _remove_caches(state)
        # First out of sight in one step, then gone: a removal that is interrupted leaves no half deck.
        trash = decks_dir() / f".removed-{name}-{os.getpid()}"
        paths.folder.rename(trash)
        shutil.rmtree(trash)
        removed.append(str(paths.folder))
    _sweep()
    return removed


def _remove_caches(state: DeckState) -> list[str]:
    """Remove the compile caches of a deck's build, unless another deck has the same build."""
    for other in list_decks():
        known = load_state(other)
        if known is not None and known.name != state.name and key_of(known) == key_of(state):
            return []
    folders = {folder.parent for folder in cache_folders(key_of(state)).values()}
    removed = []
    for folder in folders:
        if folder.is_dir():
            shutil.rmtree(folder)
            removed.append(str(folder))
    return removed


def _sweep() -> None:
    """Remove what an interrupted removal left."""
    with contextlib.suppress(OSError):
        for left in Path(decks_dir()).glob(".removed-*"):
            shutil.rmtree(left, ignore_errors=True)
