"""``torchdeck explain``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchdeck.cli.options import json_option

if TYPE_CHECKING:
    from torchdeck.machine.catalogue.kinds import Kind
    from torchdeck.machine.explain.records import ExplainReport


@click.command("explain")
@click.argument("what", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List every kind that is known.")
@click.option("--search", metavar="TEXT", help="List the kinds whose page holds this text.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language. [from the locale]")
@click.option("--facts", "facts_file", type=click.Path(path_type=Path), help="The machine that the log is from.")
@click.option("--no-facts", is_flag=True, help="Judge by the log alone.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown, to paste into an issue.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    what: tuple[str, ...],
    listing: bool,
    search: str | None,
    lang: str | None,
    facts_file: Path | None,
    no_facts: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Find the cause in a log, and the command that mends it; or show the page of one KIND.

    WHAT is a log file, a folder of logs, a memory snapshot (.pickle), or a kind; without it the log is read from
    standard input.
    """
    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.errors import EXIT_FINDINGS, EXIT_FINE
    from torchdeck.machine.catalogue.kinds import kinds
    from torchdeck.render.explain import render_explain, render_explain_markdown

    language = lang or _language()
    if listing or search is not None:
        _list([kind for kind in kinds().values() if _has(kind, search or "")], language, as_json)
        return
    if len(what) == 1 and not Path(what[0]).exists() and (what[0] in kinds() or "/" not in what[0]):
        _page(what[0], language, as_json)
        return
    explain = _engine()
    report = _snapshot(what, language) or explain(
        _read(what), language=language, foretold=_foretold(facts_file, no_facts)
    )
    if as_json:
        say_json(report)
    elif as_markdown:
        say(render_explain_markdown(report, language))
    else:
        say(render_explain(report, out_style(), language))
    failed = any(finding.severity == "error" for finding in report.findings)
    context.exit(EXIT_FINDINGS if failed else EXIT_FINE)


def _snapshot(what: tuple[str, ...], language: str) -> ExplainReport | None:
    """Return what a memory snapshot means; None where the one file that was given is none."""
    from torchdeck.machine.explain.snapshot import explain_snapshot
    from torchdeck.machine.probes.memory_snapshot import is_snapshot, read_snapshot

    if len(what) != 1 or not is_snapshot(Path(what[0])):
        return None
    return explain_snapshot(read_snapshot(Path(what[0])), language)


def _engine() -> Callable[..., ExplainReport]:
    """Return the function that explains.

    Raises:
        ToolError: RE2 is not there, as on a Python that it has no wheel for.
    """
    from torchdeck.errors import ToolError

    try:
        from torchdeck.machine.explain import explain
    except ModuleNotFoundError as error:
        raise ToolError(
            "logs cannot be explained here",
            found=f"no module {error.name} in this Python",
            needs="google-re2, which has wheels up to Python 3.14",
            mend="python -m pip install google-re2",
        ) from None
    return explain


def _language() -> str:
    """Return the language of the locale, as far as there are pages in it."""
    import os

    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def _read(what: tuple[str, ...]):  # type: ignore[no-untyped-def]
    import sys

    from torchdeck.errors import UsageError
    from torchdeck.machine.probes.logs import is_terminal, read_paths, read_stream

    if what and what != ("-",):
        return read_paths([Path(name) for name in what])
    if is_terminal(sys.stdin.buffer):
        raise UsageError(
            "there is no log to explain",
            needs="a file, a folder, or a log on standard input",
            mend=(
                "torchdeck explain train.log",
                "docker logs NAME 2>&1 | torchdeck explain",
                "torchdeck explain --list",
            ),
        )
    return read_stream(sys.stdin.buffer)


def _foretold(facts_file: Path | None, no_facts: bool) -> Callable[[], Collection[str]]:
    """Return who says which kinds the facts of the machine foretell."""

    def ask() -> Collection[str]:
        from torchdeck.cli.facts import facts_from
        from torchdeck.machine.judge import judge

        return {finding.rule for finding in judge(facts_from(facts_file)) if finding.severity in ("error", "warning")}

    return tuple if no_facts else ask


def _has(kind: Kind, text: str) -> bool:
    wanted = text.casefold()
    page = (kind.en.title, kind.en.about, kind.zh.title, kind.zh.about, kind.id)
    return any(wanted in part.casefold() for part in page)


def _list(found: list[Kind], language: str, as_json: bool) -> None:
    from torchdeck.cli.console import note, out_style, say, say_json

    if as_json:
        rows = [{"id": kind.id, "category": kind.category, "title": kind.page(language).title} for kind in found]
        say_json({"schema": "torchdeck.kinds/1", "kinds": rows})
        return
    style, category = out_style(), ""
    width = max((len(kind.id) for kind in found), default=0)
    for kind in found:
        if kind.category != category:
            category = kind.category
            say(style(category, "bold"))
        say(f"  {kind.id:<{width}}  {kind.page(language).title}")
    if not found:
        note("no kind with this text")


def _page(name: str, language: str, as_json: bool) -> None:
    import difflib

    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.errors import UsageError
    from torchdeck.machine.catalogue.kinds import kinds
    from torchdeck.machine.explain.explain import mends_of
    from torchdeck.render.explain import render_kind

    kind = kinds().get(name)
    if kind is None:
        near = difflib.get_close_matches(name, kinds(), n=3)
        raise UsageError(
            f"{name!r} is neither a file nor a known kind",
            needs=f"did you mean: {', '.join(near)}?"
            if near
            else "a file, a folder, or a kind of: torchdeck explain --list",
            mend=f"torchdeck explain {near[0]}" if near else "torchdeck explain --list",
        )
    mends = mends_of(kind, language)
    if as_json:
        page = kind.page(language)
        say_json({"schema": "torchdeck.kind/1", "id": kind.id, "category": kind.category, "severity": kind.severity,
                  "page": page, "mend": mends, "concerns": kind.concerns, "source": kind.source})  # fmt: skip
    else:
        say(render_kind(kind, mends, out_style(), language))
