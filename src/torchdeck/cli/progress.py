"""Progress on standard error: a moving line on a terminal, plain lines in a log, never on standard output.

On a terminal one line says what is being done, how much has come and for how long. Elsewhere each phase is one
line, and a phase that takes long says so from time to time, so that a log shows where the time goes.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from types import TracebackType

import click

from torchdeck.render.text import Style, clean

_HEARTBEAT_S = 15.0
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress:
    """A Reporter for people. Use it as a context manager, so that the moving line is cleared whatever happens."""

    def __init__(self, style: Style, *, quiet: bool = False) -> None:
        self._style = style
        self._quiet = quiet
        self._moving = sys.stderr.isatty() and not quiet and style.colour
        self._lock = threading.Lock()
        self._title, self._detail = "", ""
        self._began = self._said = time.monotonic()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        """Start the clock."""
        if not self._quiet:
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the phase under way; a failed one is not marked done."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        with self._lock:
            self._finish(failed=kind is not None)

    def step(self, title: str) -> None:
        """Finish the phase under way and begin another."""
        with self._lock:
            self._finish(failed=False)
            self._title, self._detail = title, ""
            self._began = self._said = time.monotonic()
            if not self._moving:
                self._line(f"{title} …")

    def progress(self, done_bytes: int, total_bytes: int, what: str) -> None:
        """Tell how far the phase has come."""
        amount = f"{done_bytes / 1e9:.2f} of {total_bytes / 1e9:.2f} GB  " if total_bytes else ""
        with self._lock:
            self._detail = f"{amount}{what}"

    def note(self, text: str) -> None:
        """Say something that a person should know; it stays on the screen."""
        self.show(f"note: {text}")

    def show(self, text: str) -> None:
        """Show a text as it is, above the line that moves."""
        with self._lock:
            self._clear()
            self._line(text)

    def _finish(self, *, failed: bool) -> None:
        if not self._title:
            return
        self._clear()
        seconds = time.monotonic() - self._began
        if self._moving:
            mark = self._style("✗", "red") if failed else self._style("✓", "green")
            self._line(f"{mark} {self._title}  {self._style(f'{seconds:.1f} s', 'dim')}")
        elif seconds > 1.0:
            self._line(f"  {'stopped' if failed else 'done'} after {seconds:.1f} s")
        self._title = ""

    def _line(self, text: str) -> None:
        if not self._quiet:
            with contextlib.suppress(OSError):
                click.echo(clean_ansi(text), err=True, color=True)

    def _clear(self) -> None:
        if self._moving:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def _tick(self) -> None:
        frame = 0
        while not self._done.wait(0.1 if self._moving else 1.0):
            with self._lock:
                if not self._title:
                    continue
                now = time.monotonic()
                if self._moving:
                    frame += 1
                    self._draw(_FRAMES[frame % len(_FRAMES)], now - self._began)
                elif now - self._said >= _HEARTBEAT_S:
                    self._said = now
                    self._line(f"  still {self._title}: {now - self._began:.0f} s  {self._detail}")

    def _draw(self, mark: str, seconds: float) -> None:
        width = shutil.get_terminal_size((80, 24)).columns
        text = f"{mark} {self._title}  {seconds:.0f} s  {clean(self._detail)}"
        with contextlib.suppress(OSError):
            sys.stderr.write("\r\x1b[2K" + text[: width - 1])
            sys.stderr.flush()


def clean_ansi(text: str) -> str:
    """Keep our own colours, drop every other control code."""
    return "\x1b[".join(clean(part) for part in text.split("\x1b["))
