"""``torchdeck config``."""

from __future__ import annotations

from pathlib import Path

import click

from torchdeck.cli.options import json_option, project_of


@click.command("config")
@click.option("--project", type=click.Path(file_okay=False, path_type=Path), help="The project folder.")
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@json_option
def command(project: Path | None, origin: bool, as_json: bool) -> None:
    """Show the settings. Order: flag, environment (TORCHDECK_…), torchdeck.toml, the user's file, default."""
    from torchdeck import places, settings
    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.render.deck import render_settings

    folder = project_of(project)
    found = settings.load(folder)
    if as_json:
        rows = {name: {"value": setting.value, "origin": setting.origin} for name, setting in found.items()}
        say_json({"schema": "torchdeck.config/1", "project": str(folder), "settings": rows})
        return
    helps = {name: key.help for name, key in settings.KEYS.items()}
    values = {name: (setting.value, setting.origin) for name, setting in found.items()}
    files = (str(folder / settings.PROJECT_FILE), str(places.config_file()))
    say(render_settings(values, helps, files, with_origin=origin, style=out_style()))
