"""The command line: a table of commands, loaded one at a time, and the door where errors become exit codes."""

from __future__ import annotations

import sys

from torchdeck.cli.app import app
from torchdeck.cli.failure import guarded

__all__ = ["app", "main"]


def main() -> None:
    """Run torchdeck on this process's arguments and exit with its code."""
    sys.exit(guarded(app, sys.argv[1:]))
