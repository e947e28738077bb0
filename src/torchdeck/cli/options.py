"""Options that several commands share, and how a command finds its project and deck."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from torchdeck import settings

F = TypeVar("F", bound=Callable[..., Any])


def deck_options(function: F) -> F:
    """Add ``--name`` and ``--project``: which deck is meant."""
    function = click.option("--name", help="Which deck; default: the one of this project.")(function)
    return click.option(
        "--project",
        type=click.Path(file_okay=False, path_type=Path),
        help="The project folder; default: this one, or the nearest above with a torchdeck.toml.",
    )(function)


def json_option(function: F) -> F:
    """Add ``--json``: one JSON document on standard output and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def project_of(project: Path | None) -> Path:
    """Return the project folder that a command is about.

    Raises:
        UsageError: It does not exist.
    """
    from torchdeck.errors import UsageError

    try:
        start = project or Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current folder no longer exists", mend="cd to another folder") from None
    if not start.is_dir():
        raise UsageError(f"there is no folder {start}", mend=f"mkdir -p {start}")
    return settings.find_project(start)


def wanted_name(project: Path, name: str | None) -> str:
    """Return the deck's name from the flag, the environment or the project's file; empty if none says."""
    return str(settings.load(project, {"name": name})["name"].value)
