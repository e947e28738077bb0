"""``torchdeck verify``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import deck_options, json_option, project_of, wanted_name


@click.command("verify")
@deck_options
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds.")
@json_option
@click.pass_context
def command(context: click.Context, project: Path | None, name: str | None, timeout_s: float, as_json: bool) -> None:
    """Prove that the deck computes right: versions, files, real kernels, compilation. Says what each took."""
    from torchdeck.cli.console import err_style, out_style, say, say_json
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.prove import prove_deck
    from torchdeck.environment.deck.state import require_deck
    from torchdeck.errors import EXIT_FINDINGS, EXIT_FINE
    from torchdeck.render.deck import render_proof

    folder = project_of(project)
    state = require_deck(folder, wanted_name(folder, name))
    with Progress(err_style(), quiet=as_json) as progress:
        progress.step("proving that it computes right")
        proof = prove_deck(state, progress, timeout_s)
    say_json(proof) if as_json else say(render_proof(proof, out_style()))
    context.exit(EXIT_FINE if proof.passed else EXIT_FINDINGS)
