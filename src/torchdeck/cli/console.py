"""What the terminal can show: colour or not, and a line of progress that stays out of pipes."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

import click

from torchdeck.render.text import PLAIN, Style


def _wants_colour(stream: TextIO) -> bool:
    """Decide by NO_COLOR, FORCE_COLOR, TERM=dumb, and whether a person is looking."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _style(stream: TextIO) -> Style:
    return Style(colour=True) if _wants_colour(stream) else PLAIN


def out_style() -> Style:
    """Return the style of standard output."""
    return _style(sys.stdout)


def err_style() -> Style:
    """Return the style of standard error."""
    return _style(sys.stderr)


def say(text: str = "") -> None:
    """Print to standard output, colours kept as the style made them."""
    click.echo(text, color=True)


def note(text: str = "") -> None:
    """Print to standard error: everything that is not the answer."""
    click.echo(text, err=True, color=True)


def say_json(document: Any) -> None:
    """Print one JSON document, and nothing else, to standard output."""
    import msgspec

    click.echo(json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False))
