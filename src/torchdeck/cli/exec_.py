"""``torchdeck exec``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from torchdeck.cli.options import deck_options, project_of, wanted_name


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@deck_options
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, project: Path | None, name: str | None, argv: tuple[str, ...]) -> None:
    """Run a command inside the deck, here on this terminal, and pass on its exit code.

    torchdeck exec -- python train.py
    """
    from torchdeck import runner
    from torchdeck.environment.deck.environ import environment_of
    from torchdeck.environment.deck.state import require_deck
    from torchdeck.errors import EXIT_WRAPPER, FindingsError, TorchdeckError

    try:
        folder = project_of(project)
        state = require_deck(folder, wanted_name(folder, name))
        if not state.ready:
            raise FindingsError(f"the deck {state.name} is not complete", mend="torchdeck up")
    except TorchdeckError as error:
        error.exit_code = EXIT_WRAPPER  # the command's own codes must not be taken for ours
        raise
    rc = runner.run_attached(list(argv), env=environment_of(state, os.environ))
    if rc == runner.RC_NOT_FOUND:
        click.echo(f"error: there is no command {argv[0]!r} in the deck {state.name} or on PATH", err=True)
    context.exit(rc)
