"""Where torchdeck keeps things: the XDG folders, and nothing else.

Every function returns a path and creates nothing. An XDG variable that is not
absolute is ignored, as the XDG base directory specification asks.
"""

from __future__ import annotations

import os
from pathlib import Path

_APP = "torchdeck"


def _xdg(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable, "")
    base = Path(value) if value and Path(value).is_absolute() else home() / fallback
    return base / _APP


def home() -> Path:
    """Return the home folder, also for a user id that has no entry in passwd."""
    try:
        return Path.home()
    except RuntimeError:  # neither HOME nor a passwd entry
        return Path("/")


def data_dir() -> Path:
    """Return the folder of the decks and their environments."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def config_file() -> Path:
    """Return the user's settings file."""
    return _xdg("XDG_CONFIG_HOME", ".config") / "config.toml"


def cache_dir() -> Path:
    """Return the folder of what can be made again: compile caches, saved traces."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def fold_home(text: str) -> str:
    """Replace the home folder in a text by ``~``, so that reports carry no personal name."""
    folder = str(home())
    return text if folder == "/" else text.replace(folder, "~")
