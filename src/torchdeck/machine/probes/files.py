"""Small helpers of the probes: a file that may not be there, a path without anybody's name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from torchdeck import places

_MAX_BYTES = 2_000_000


def read_text(path: Path, max_bytes: int = _MAX_BYTES) -> str | None:
    """Return what a file holds, cut off at a size; None if it cannot be read. A pipe does not make it wait."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    parts: list[bytes] = []
    size = 0
    try:
        # /proc gives a page at a time.
        while size < max_bytes and (part := os.read(handle, max_bytes - size)):
            parts.append(part)
            size += len(part)
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", "replace")


def read_number(path: Path) -> int | None:
    """Return the number that a file holds; None if it holds none, or cannot be read."""
    text = (read_text(path, 100) or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 25 else None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted, not paths
    return []


def is_there(path: Path) -> bool:
    """Return whether something is there, as far as this user may see."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def fold_person(path: str, names: frozenset[str]) -> str:
    """Return a path without anybody's name: the home folder as ``~``, a folder named like the user as ``$USER``.

    Args:
        path: The path.
        names: The names of the user.
    """
    folded = places.fold_home(path)
    return "/".join("$USER" if part in names else part for part in folded.split("/"))


def names_of_user() -> frozenset[str]:
    """Return the names by which folders of this user are called, root's left out, which is nobody's."""
    found = {os.environ.get(variable, "") for variable in ("LOGNAME", "USER", "LNAME", "USERNAME")}
    found.add(places.home().name)
    return frozenset(name for name in found if name and name not in ("root", "~", "tmp", "home"))
