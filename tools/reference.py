"""Write the reference pages from the program itself, or with ``--check`` say whether they are up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import click

from torchdeck import settings
from torchdeck.cli.app import COMMANDS, app
from torchdeck.machine.catalogue import builds, cuda_of, gpu_targets, releases
from torchdeck.machine.catalogue.kinds import kinds
from torchdeck.machine.explain.explain import mends_of
from torchdeck.render.explain import render_kind

DOCS = Path(__file__).parent.parent / "docs" / "reference"
_HEAD = "<!-- Made by `make reference` from the program: do not edit. -->\n"


def commands_page() -> str:
    """Return every command with its options, as ``--help`` prints them."""
    lines = [_HEAD, "# Commands", "", "Exit codes: 0 fine, 1 findings or a failed job, 2 usage, 3 a bug of torchdeck's own (its trace is saved), 4 something outside is missing (network, permission, disk), 125 `exec` itself failed, 130 interrupted.", ""]  # fmt: skip
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        context = click.Context(command, info_name=f"torchdeck {name}", terminal_width=100, max_content_width=100)
        lines += [f"## torchdeck {name}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def settings_page() -> str:
    """Return every setting."""
    lines = [_HEAD, "# Settings", "", "Order: flag, environment variable, the project's `torchdeck.toml`, the user's file, default. `torchdeck config --origin` shows which one won.", "", "| key in torchdeck.toml | environment | default | meaning |", "|---|---|---|---|"]  # fmt: skip
    for name, key in settings.KEYS.items():
        default = "" if key.default in ("", []) else str(key.default).lower()
        lines.append(f"| `{name}` | `TORCHDECK_{name.upper()}` | {default} | {key.help} |")
    return "\n".join([*lines, ""])


def stacks_page() -> str:
    """Return the catalogue of builds."""
    lines = [_HEAD, "# Stacks", "", "How a row is known: *verified* from the published wheel, *read* in public documentation, *inferred* from other rows. Each row's source stands in `src/torchdeck/machine/catalogue/`.", "", "## Releases", "", "| torch | Python | torchvision | torchaudio |", "|---|---|---|---|"]  # fmt: skip
    for release in releases():
        pythons = f"{release.pythons[0]}–{release.pythons[1]}"
        lines.append(f"| {release.torch} | {pythons} | {release.torchvision} | {release.torchaudio or '–'} |")
    lines += ["", "## Builds", "", "| torch | build | index | processor | cuDNN | NCCL | Triton | driver floor | recommended | GPU code | how known |", "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in builds():
        cuda = cuda_of(row.cuda) if row.cuda else None
        held = gpu_targets()[row.targets] if row.targets else None
        code = " ".join(f"{a}.{b}" for a, b in held.binary) + (" +PTX" if held.ptx else "") if held else "–"
        driver = (cuda.floor, cuda.bundled) if cuda else ("–", "–")
        cells = (row.torch, row.variant, row.index, row.arch, row.cudnn or "–", row.nccl or "–", row.triton or "–")
        lines.append(f"| {' | '.join((*cells, *driver, code, row.method))} |")
    return "\n".join([*lines, ""])


def kinds_page(language: str) -> str:
    """Return the page of every known kind of failure."""
    title = {"en": "Known kinds of failure", "zh": "已知的故障类型"}[language]
    lines = [_HEAD, f"# {title}", "", f"`torchdeck explain KIND{'' if language == 'en' else ' --lang zh'}`", ""]
    category = ""
    for kind in kinds().values():
        if kind.category != category:
            category = kind.category
            lines += [f"## {category}", ""]
        page = render_kind(kind, mends_of(kind, language), language=language).split("\n", 2)[2]
        lines += [f"### {kind.id}", "", f"**{kind.page(language).title}**", "", "```text", page, "```", ""]
    return "\n".join(lines)


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    pages = {
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "stacks.md": stacks_page(),
        "kinds.md": kinds_page("en"),
        "kinds.zh.md": kinds_page("zh"),
    }
    stale = [
        name
        for name, text in pages.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != text
    ]
    if arguments.check:
        for name in stale:
            print(f"docs/reference/{name} is not what the program says: make reference")
        return 1 if stale else 0
    DOCS.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (DOCS / name).write_text(pages[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
