"""``torchdeck up``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchdeck.cli.options import deck_options, json_option, project_of

if TYPE_CHECKING:
    from torchdeck.environment.records import Preview
    from torchdeck.render.text import Style


@click.command("up")
@deck_options
@click.option("--stack", help="torch release and build: 2.6, 2.7-cu128, 2.6-cpu, latest.")
@click.option("--python", "python", help="Python of the deck: 3.12, or a path.")
@click.option("--engine", help="venv (docker and podman are not built yet).")
@click.option("--with", "packages", multiple=True, metavar="PACKAGE", help="A further package; repeatable.")
@click.option("--requirements", "-r", multiple=True, metavar="FILE", help="A requirements file; repeatable.")
@click.option("--keep-stack", is_flag=True, default=None, help="Leave out pins that conflict with the stack.")
@click.option("--port", type=int, help="First port that JupyterLab tries. [8888]")
@click.option("--host", help="Address that JupyterLab listens on. [127.0.0.1]")
@click.option("--notebooks", help="Working folder of JupyterLab. [./notebooks]")
@click.option("--dir", "directory", help="Folder of the environment, such as one on a larger disk.")
@click.option("--no-lab", is_flag=True, help="Make and verify the environment, start nothing.")
@click.option("--relock", is_flag=True, help="Choose the newest matching versions instead of keeping the lock.")
@click.option("--repair", is_flag=True, help="Check every package and verify again.")
@click.option("--dry-run", is_flag=True, help="Print every command and file of the plan; change nothing.")
@json_option
def command(
    project: Path | None,
    name: str | None,
    no_lab: bool,
    relock: bool,
    repair: bool,
    dry_run: bool,
    as_json: bool,
    packages: tuple[str, ...],
    requirements: tuple[str, ...],
    directory: str | None,
    **flags: Any,
) -> None:
    """Make the environment, verify it, start JupyterLab, print its address.

    Called again, it does only what is missing, and prints the same address.
    """
    from torchdeck import settings
    from torchdeck.cli.console import err_style, out_style, say, say_json
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.decide import plan_up
    from torchdeck.environment.deck.spec import spec_from
    from torchdeck.environment.deck.up import Options, up
    from torchdeck.render.deck import render_plan, render_up

    folder = project_of(project)
    given = {**flags, "name": name, "dir": directory, "packages": list(packages) or None}
    given["requirements"] = list(requirements) or None
    spec = spec_from(settings.load(folder, given), folder)
    with Progress(err_style(), quiet=as_json) as progress:
        if dry_run:
            plan, preview = plan_up(spec, progress)
        else:
            result = up(
                spec,
                progress,
                on_preview=lambda preview: progress.show(_shown(preview, err_style())),
                options=Options(relock=relock, repair=repair, start_lab=not no_lab),
            )
    if dry_run:
        say_json(plan) if as_json else say(render_plan(plan, preview, out_style()))
    elif as_json:
        say_json(result.report())
    else:
        say(render_up(result.report(), out_style()))


def _shown(preview: Preview, style: Style) -> str:
    """Return the preview, and below it what a person should know of this machine first."""
    from torchdeck.render.deck import render_preview
    from torchdeck.render.findings import render_findings

    grave = [finding for finding in preview.findings if finding.severity != "info"]
    text = render_preview(preview, style)
    return f"\n{text}\n" + (f"\n{render_findings(grave, style)}\n" if grave else "")
