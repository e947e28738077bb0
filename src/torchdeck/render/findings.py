"""Findings and facts as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from torchdeck.machine.facts import Facts
from torchdeck.machine.records import Finding
from torchdeck.render.facts import fact_rows
from torchdeck.render.text import PLAIN, Style, clean, render_block


def render_findings(
    findings: Sequence[Finding],
    style: Style = PLAIN,
    *,
    verbose: bool = False,
    fixable: bool = False,
    counted: bool = True,
    fine: Sequence[str] = (),
) -> str:
    """Return one block a finding, and a last line that counts them and gives the next command.

    Args:
        findings: The gravest first.
        style: Colours or none.
        verbose: Whether the evidence is shown for all.
        fixable: Whether a mend can be carried out by ``--fix``.
        counted: Whether the last line is wanted.
        fine: What was judged and is fine, to be named.
    """
    blocks = []
    for finding in findings:
        rows: list[tuple[str, str | Sequence[str]]] = [
            ("at", finding.where),
            ("why", finding.cause),
            ("found", finding.evidence if verbose or finding.severity in ("error", "unknown") else ()),
            ("needs", finding.needs),
            ("mend", finding.mend),
        ]
        blocks.append(render_block(finding.severity, finding.rule, finding.title, rows, style))
    if fine:
        blocks.append(f"{style('fine', 'green')}: {', '.join(fine)}")
    if counted:
        blocks.append(render_count(findings, style) + _next_command(findings, fixable=fixable))
    return "\n\n".join(blocks)


def _next_command(findings: Sequence[Finding], *, fixable: bool) -> str:
    if fixable:
        return "; next: torchdeck doctor --fix --dry-run"
    grave = next((finding for finding in findings if finding.severity in ("error", "warning")), None)
    return f"; next: {grave.mend[0]}" if grave is not None and grave.mend else ""


def render_count(findings: Sequence[Finding], style: Style = PLAIN) -> str:
    """Return how many findings of each severity there are."""
    if not findings:
        return style("nothing found that is wrong or will go wrong", "green")
    counts = {
        "error": sum(finding.severity == "error" for finding in findings),
        "warning": sum(finding.severity == "warning" for finding in findings),
        "not known": sum(finding.severity == "unknown" for finding in findings),
        "for your information": sum(finding.severity == "info" for finding in findings),
    }
    plural = {"error": "errors", "warning": "warnings"}
    return ", ".join(
        f"{number} {plural.get(name, name) if number != 1 else name}" for name, number in counts.items() if number
    )


def render_markdown(facts: Facts | None, findings: Sequence[Finding]) -> str:
    """Return a report to paste into an issue; without facts where files were judged."""
    lines = ["### torchdeck doctor", ""]
    if facts is not None:
        lines += ["| fact | value |", "|---|---|"]
        lines += [f"| {label} | {_cell(text)} |" for label, text in fact_rows(facts)] + [""]
    lines += ["| severity | rule | finding | mend |", "|---|---|---|---|"]
    for finding in findings:
        mend = "; ".join(f"`{_cell(text)}`" for text in finding.mend)
        title = f"{finding.where}: {finding.title}" if finding.where else finding.title
        lines.append(f"| {finding.severity} | `{finding.rule}` | {_cell(title)} | {mend} |")
    if not findings:
        lines.append("| – | – | nothing found | – |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return clean(text).replace("|", "\\|").replace("\n", " ")
