"""The first notebook of a new working folder. What is there already is never touched."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from torchdeck.environment.deck.state import write_atomic

FIRST = "first_steps.ipynb"


def place_first_notebook(folder: Path) -> Path | None:
    """Put the first notebook into a working folder that has no notebook yet; return it if it was put there.

    Raises:
        OSError: The folder cannot be written.
    """
    target = folder / FIRST
    if any(folder.glob("*.ipynb")):
        return None
    source = resources.files("torchdeck") / "training" / "examples" / FIRST
    write_atomic(target, source.read_bytes())
    return target
