"""How work in progress is told to whoever watches. The command line shows it; a program may leave it silent."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives what is being done. No method may fail or wait."""

    def step(self, title: str) -> None:
        """A new phase begins."""

    def progress(self, done_bytes: int, total_bytes: int, what: str) -> None:
        """The phase has come this far; ``what`` is under way."""

    def note(self, text: str) -> None:
        """Something a person should know."""


class Silent:
    """Tells nobody."""

    def step(self, title: str) -> None:
        """Say nothing."""

    def progress(self, done_bytes: int, total_bytes: int, what: str) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
