"""``torchdeck doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchdeck.cli.options import json_option

if TYPE_CHECKING:
    from torchdeck.machine.facts import Facts


@click.command("doctor")
@click.option("--python", type=click.Path(path_type=Path), help="Describe this Python, and the torch in it.")
@click.option("--facts", "facts_file", type=click.Path(path_type=Path), help="Judge a saved machine, not this one.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the facts of this machine to a file.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings and for what is not known, too.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown, to paste into an issue.")
@click.option("--verbose", "-v", is_flag=True, help="Show the evidence of each finding.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    python: Path | None,
    facts_file: Path | None,
    save: Path | None,
    strict: bool,
    as_markdown: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find what is wrong, or will go wrong, on this machine. Imports no torch, changes nothing."""
    from torchdeck.cli.console import note, out_style, say, say_json
    from torchdeck.errors import EXIT_FINDINGS, EXIT_FINE
    from torchdeck.machine.facts import encode_facts
    from torchdeck.machine.judge import judge
    from torchdeck.machine.records import FindingsReport
    from torchdeck.render.deck import rows
    from torchdeck.render.findings import fact_rows, render_findings, render_markdown

    facts = _facts(facts_file, python)
    if save is not None:
        save.write_bytes(encode_facts(facts))
        note(f"facts written to {save}")
    findings = judge(facts)
    if as_json:
        say_json(FindingsReport(findings=tuple(findings)))
    elif as_markdown:
        say(render_markdown(facts, findings))
    else:
        say(rows(fact_rows(facts), out_style()))
        say()
        say(render_findings(findings, out_style(), verbose=verbose))
    grave = ("error", "warning", "unknown") if strict else ("error",)
    context.exit(EXIT_FINDINGS if any(finding.severity in grave for finding in findings) else EXIT_FINE)


def _facts(facts_file: Path | None, python: Path | None) -> Facts:
    from torchdeck.errors import UsageError
    from torchdeck.machine.facts import decode_facts
    from torchdeck.machine.facts.aggregate import MAX_BYTES
    from torchdeck.machine.probes import gather

    if facts_file is None:
        return gather(python)
    if python is not None:
        raise UsageError("--python and --facts exclude each other", needs="one of them")
    try:
        with facts_file.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{facts_file} cannot be read", found=error.strerror or str(error), mend="torchdeck doctor --save host.json"
        ) from None
    return decode_facts(data, str(facts_file))
