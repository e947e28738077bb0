"""``torchdeck logs``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from torchdeck.cli.options import deck_options, project_of, wanted_name


@click.command("logs")
@deck_options
@click.option("--install", "installation", is_flag=True, help="What the installation printed, instead of JupyterLab.")
@click.option(
    "--lines", "-n", type=click.IntRange(0), default=50, show_default=True, help="How many of the last lines."
)
@click.option("--follow", "-f", is_flag=True, help="Go on printing as it grows; Ctrl-C ends.")
def command(project: Path | None, name: str | None, installation: bool, lines: int, follow: bool) -> None:
    """Show what JupyterLab or the installation printed."""
    from torchdeck.cli.console import note
    from torchdeck.environment.deck.state import deck_of, list_decks, paths_of, require_deck

    folder = project_of(project)
    deck = deck_of(folder, wanted_name(folder, name))
    # What an installation printed is wanted most where it did not get far enough to leave a state.
    paths = paths_of(deck if deck in list_decks() else require_deck(folder, deck).name)
    path = paths.install_log if installation else paths.lab_log
    if not path.is_file():
        note(f"nothing yet at {path}")
        return
    with path.open("rb") as file:
        _print(_last_lines(file.read(), lines))
        while follow:
            more = file.read(65536)
            _print(more)
            if not more:
                time.sleep(0.3)


def _last_lines(data: bytes, num: int) -> bytes:
    return b"".join(data.splitlines(keepends=True)[-num:]) if num else b""


def _print(data: bytes) -> None:
    from torchdeck.render.text import clean

    if data:
        click.echo(clean(data.decode("utf-8", "replace")), nl=False)
