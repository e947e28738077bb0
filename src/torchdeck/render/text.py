"""Errors and findings as text for a terminal.

It does not know whether the terminal has colours: the caller says so with a ``Style``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchdeck.errors import TorchdeckError

_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "bold": 1, "dim": 2}


@dataclass(frozen=True)
class Style:
    """How a text may be emphasised: with ANSI colours, or not at all."""

    colour: bool = False

    def __call__(self, text: str, *names: str) -> str:
        """Return the text in the named colours, or unchanged."""
        if not self.colour or not names:
            return text
        return f"\x1b[{';'.join(str(_CODES[name]) for name in names)}m{text}\x1b[0m"


PLAIN = Style()

_SEVERITY_COLOURS = {
    "error": ("red", "bold"),
    "warning": ("yellow",),
    "unknown": ("magenta",),
    "info": ("cyan",),
}


def clean(text: str) -> str:
    """Remove control codes, so that no text from outside can act on a terminal. Tabs and newlines stay."""
    return "".join(c if c in "\t\n" or (c.isprintable() or c == " ") else "�" for c in text)


def render_block(
    severity: str,
    rule: str,
    title: str,
    rows: Iterable[tuple[str, str | Sequence[str]]],
    style: Style = PLAIN,
) -> str:
    """Return one finding or error: a headline, then labelled rows; rows without text are left out."""
    head = style(f"{severity}[{rule}]" if rule else severity, *_SEVERITY_COLOURS.get(severity, ()))
    lines = [f"{head}{'' if rule else ':'} {style(clean(title), 'bold')}"]
    for label, value in rows:
        for text in [value] if isinstance(value, str) else value:
            for number, line in enumerate(clean(text).splitlines()):
                lines.append(f"  {style(f'{label:<7}', 'dim') if number == 0 else ' ' * 7} {line}")
    return "\n".join(lines)


def render_error(error: TorchdeckError, style: Style = PLAIN) -> str:
    """Return an error as a person should read it: what happened, found, needed, and the mend."""
    rows: list[tuple[str, str | Sequence[str]]] = [
        ("found", error.found),
        ("needs", error.needs),
        ("log", error.detail),
        ("mend", error.mend),
    ]
    return render_block("error", error.rule, error.title, rows, style)
