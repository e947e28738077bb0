"""``torchdeck rm``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import deck_options, project_of, wanted_name


@click.command("rm")
@deck_options
@click.option("--purge", is_flag=True, help="Remove its compile caches too.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def command(project: Path | None, name: str | None, purge: bool, yes: bool) -> None:
    """Remove the deck: JupyterLab, environment, state. Notebooks, torchdeck.toml and torchdeck.lock stay."""
    import sys

    from torchdeck.cli.console import err_style, say
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.remove import remove
    from torchdeck.environment.deck.state import deck_of, list_decks, require_deck
    from torchdeck.errors import UsageError

    folder = project_of(project)
    asked = wanted_name(folder, name)
    wanted = deck_of(folder, asked)
    if wanted not in list_decks():
        require_deck(folder, asked)  # raises with what there is
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"removing {wanted} needs a yes", found="no terminal to ask on", mend="torchdeck rm --yes")
        click.confirm(f"Remove the deck {wanted} and its environment?", abort=True, err=True)
    with Progress(err_style()) as progress:
        for path in remove(wanted, progress, purge=purge):
            say(f"removed {path}")
