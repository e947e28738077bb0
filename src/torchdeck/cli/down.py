"""``torchdeck down``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import deck_options, project_of, wanted_name


@click.command("down")
@deck_options
def command(project: Path | None, name: str | None) -> None:
    """Stop JupyterLab with its kernels. The environment, the notebooks and the address stay."""
    from torchdeck.cli.console import err_style, say
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.remove import down
    from torchdeck.environment.deck.state import require_deck

    folder = project_of(project)
    state = require_deck(folder, wanted_name(folder, name))
    with Progress(err_style()) as progress:
        stopped = down(state.name, progress)
    say(f"{state.name}: JupyterLab stopped" if stopped else f"{state.name}: JupyterLab was not running")
