"""Where one deck keeps what. Paths only: nothing here reads or writes."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from torchdeck import places
from torchdeck.errors import UsageError

_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,62}$")


def decks_dir() -> Path:
    """Return the folder that holds every deck of this user."""
    return places.data_dir() / "decks"


def check_name(name: str) -> str:
    """Return the name if a deck may bear it.

    Raises:
        UsageError: It may not.
    """
    if not _NAME.match(name):
        raise UsageError(
            f"{name!r} cannot be the name of a deck",
            needs="1 to 63 small letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    return name


def name_from(project: Path) -> str:
    """Return the name that a project's deck gets when none was asked for."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", project.name.lower()).strip("-._")[:40]
    return slug or "main"


@dataclass(frozen=True)
class DeckPaths:
    """The files of one deck.

    Args:
        folder: The deck's own folder.
        environment: Its virtual environment, which may lie elsewhere (``--dir``).
    """

    folder: Path
    environment: Path

    @property
    def name(self) -> str:
        """The deck's name."""
        return self.folder.name

    @property
    def state(self) -> Path:
        """What is known of the deck, as JSON."""
        return self.folder / "deck.json"

    @property
    def owner(self) -> Path:
        """The project that the deck belongs to; it is there before any state is."""
        return self.folder / "project"

    @property
    def lock(self) -> Path:
        """The lock that the environment was made from."""
        return self.folder / "torchdeck.lock"

    @property
    def constraints(self) -> Path:
        """What pip and uv may not replace."""
        return self.folder / "constraints.txt"

    @property
    def inputs(self) -> Path:
        """What was asked for, as the resolver reads it."""
        return self.folder / "inputs.txt"

    @property
    def pylock(self) -> Path:
        """What the resolver answered."""
        return self.folder / "pylock.toml"

    @property
    def install_log(self) -> Path:
        """Everything that uv printed."""
        return self.folder / "install.log"

    @property
    def lab(self) -> Path:
        """JupyterLab's own folder: token, configuration, runtime files."""
        return self.folder / "lab"

    @property
    def token(self) -> Path:
        """JupyterLab's token, readable by its owner only."""
        return self.lab / "token"

    @property
    def lab_log(self) -> Path:
        """What JupyterLab printed."""
        return self.lab / "lab.log"

    @property
    def python(self) -> Path:
        """The deck's Python."""
        return self.environment / "bin" / "python"

    @property
    def marker(self) -> Path:
        """What shows that a folder is an environment of a deck, and whose."""
        return self.environment / ".torchdeck"

    @property
    def guard(self) -> Path:
        """The file that is locked while the deck is being changed; it is never removed."""
        return self.folder.parent.parent / "locks" / f"{self.name}.lock"


def site_packages(environment: Path) -> Path | None:
    """Return the folder of a virtual environment's packages, None if there is none."""
    found = sorted((environment / "lib").glob("python3.*/site-packages"))
    return found[-1] if found else None


def running_python() -> Path:
    """Return the interpreter beneath the virtual environment that torchdeck runs in."""
    base = getattr(sys, "_base_executable", "") or sys.executable
    return Path(base)
