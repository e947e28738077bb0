"""``torchdeck status``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import deck_options, json_option, project_of, wanted_name


@click.command("status")
@deck_options
@click.option("--all", "every", is_flag=True, help="Every deck of this user, not only this project's.")
@json_option
def command(project: Path | None, name: str | None, every: bool, as_json: bool) -> None:
    """Show the decks: address, stack, health. Changes nothing."""
    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.environment.deck.state import deck_of, list_decks
    from torchdeck.environment.deck.status import status_of
    from torchdeck.render.deck import render_status

    existing = list_decks()
    if not every:
        folder = project_of(project)
        wanted = deck_of(folder, wanted_name(folder, name))
        chosen = [wanted] if wanted in existing else []
    else:
        chosen = existing
    statuses = [status_of(deck) for deck in chosen]
    if as_json:
        say_json({"schema": "torchdeck.status/1", "decks": statuses})
    else:
        say(render_status(statuses, num_others=len(existing) - len(chosen), style=out_style()))
