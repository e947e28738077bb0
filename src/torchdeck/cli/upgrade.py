"""``torchdeck upgrade``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import deck_options, json_option, project_of, wanted_name


@click.command("upgrade")
@deck_options
@click.option("--to", default="latest", show_default=True, help="The stack to go to: 2.7, 2.8-cu128, latest.")
@click.option("--python", help="Another Python for the deck, where the new stack needs one.")
@click.option("--dry-run", is_flag=True, help="Show what changes, and stop.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def command(
    project: Path | None, name: str | None, to: str, python: str | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Show what another stack would change, ask, and change it. If it fails, the deck goes back."""
    import sys

    import msgspec

    from torchdeck import settings
    from torchdeck.cli.console import err_style, note, out_style, say, say_json
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.spec import spec_from
    from torchdeck.environment.deck.state import require_deck
    from torchdeck.environment.deck.upgrade import plan_upgrade, upgrade
    from torchdeck.errors import UsageError
    from torchdeck.render.deck import render_up, render_upgrade
    from torchdeck.render.text import render_error

    folder = project_of(project)
    state = require_deck(folder, wanted_name(folder, name))
    found = settings.load(folder, {"name": name, "python": python})
    if found["stack"].origin != "default":
        raise UsageError(
            "the stack of this deck is set, and would be set back by the next up",
            found=f"stack = {found['stack'].value!r} ({found['stack'].origin})",
            mend=f"change it there to stack = {to!r}, then: torchdeck up",
        )
    spec = spec_from(found, folder)
    with Progress(err_style(), quiet=as_json) as progress:
        report = plan_upgrade(spec, state, to, progress)
    if dry_run or not report.changes:
        say_json(report) if as_json else say(render_upgrade(report, out_style()))
        return
    if not as_json:
        note(render_upgrade(report, err_style()))
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "an upgrade needs a yes", found="no terminal to ask on", mend=f"torchdeck upgrade --to {to} -y"
            )
        click.confirm("Change the deck?", abort=True, err=True)
    with Progress(err_style(), quiet=as_json) as progress:
        result = upgrade(
            spec,
            state,
            report.new_stack,
            progress,
            on_rollback=lambda error: progress.show(render_error(error, err_style())),
        )
    say_json(msgspec.structs.replace(report, done=True)) if as_json else say(render_up(result.report(), out_style()))
