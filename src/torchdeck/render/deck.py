"""Decks as text: what is about to happen, what happened, how they are."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from torchdeck.environment.records import DeckStatus, Preview, Proof, UpgradeReport, UpReport
from torchdeck.render.text import PLAIN, Style, clean

_STATE_COLOURS = {"running": "green", "stopped": "dim", "incomplete": "yellow", "broken": "red"}
_OUTCOME = {"pass": ("✓", "green"), "fail": ("✗", "red"), "skip": ("–", "dim")}


def human_bytes(num_bytes: int) -> str:
    """Return a size for people: 3.1 GB, 24 MB."""
    if num_bytes >= 1e9:
        return f"{num_bytes / 1e9:.1f} GB"
    return f"{num_bytes / 1e6:.0f} MB"


def rows(pairs: Sequence[tuple[str, str]], style: Style, indent: str = "") -> str:
    """Return labelled lines; pairs without a text are left out."""
    width = max((len(label) for label, text in pairs if text), default=0)
    lines = []
    for label, text in pairs:
        for number, line in enumerate(clean(text).splitlines()):
            shown = style(f"{label:<{width}}", "dim") if number == 0 else " " * width
            lines.append(f"{indent}{shown}  {line}")
    return "\n".join(lines)


def render_preview(preview: Preview, style: Style = PLAIN) -> str:
    """Return what is about to be downloaded and stored, and where."""
    stack = f"torch {preview.torch}  {_build(preview.variant, preview.cuda)}  Python {preview.python}"
    cached = "nothing: uv's cache has it all"
    download = f"at most {human_bytes(preview.download_bytes)}" if preview.download_bytes else cached
    stored = f"about {human_bytes(preview.stored_bytes)} in {preview.environment}"
    pairs = [
        ("deck", preview.deck),
        ("stack", style(stack, "bold")),
        ("why", "\n".join(preview.reasons)),
        ("download", f"{download} ({preview.num_packages} packages)"),
        (
            "store",
            f"{stored} ({human_bytes(preview.free_bytes)} free)" if preview.stored_bytes else "no new environment",
        ),
        ("notebooks", preview.notebooks),
    ]
    return rows(pairs, style)


def _build(variant: str, cuda: str) -> str:
    return "CPU" if variant == "cpu" else f"CUDA {cuda} ({variant})"


def render_up(report: UpReport, style: Style = PLAIN) -> str:
    """Return the end of ``up``: the address first, then what to do next."""
    lines = []
    if report.proof is not None:
        lines += [render_proof(report.proof, style, brief=True), ""]
    if not report.address:
        lines.append(f"The deck {report.deck} is ready: torchdeck exec -- python …")
        return "\n".join(lines)
    lines += [
        f"JupyterLab   {style(report.address, 'bold', 'cyan')}",
        "",
        rows(
            [
                ("stack", f"torch {report.torch} ({report.variant}), Python {report.python}"),
                ("notebooks", report.notebooks),
                (
                    "on a remote machine",
                    f"ssh -N -L {_port(report.address)}:127.0.0.1:{_port(report.address)} <this host>",
                ),
                ("run a program", "torchdeck exec -- python train.py"),
                ("stop, start", "torchdeck down, torchdeck up"),
                ("prove it again", "torchdeck verify"),
            ],
            style,
        ),
    ]
    return "\n".join(lines)


def _port(address: str) -> str:
    return address.split("/lab", maxsplit=1)[0].rsplit(":", 1)[-1]


def render_proof(proof: Proof, style: Style = PLAIN, *, brief: bool = False) -> str:
    """Return each check with what it found and took; brief: failures, and one line for the rest."""
    lines = []
    for check in proof.checks:
        if brief and check.outcome != "fail":
            continue
        mark, colour = _OUTCOME[check.outcome]
        took = f"{check.wall_ms / 1000:7.2f} s" if check.wall_ms else " " * 9
        what = f"{check.name} {check.subject}".strip()
        lines.append(f"{style(mark, colour)} {style(took, 'dim')}  {what:<30} {clean(check.detail)}".rstrip())
    counts = {outcome: sum(check.outcome == outcome for check in proof.checks) for outcome in _OUTCOME}
    verdict = style("verified", "green", "bold") if proof.passed else style("not verified", "red", "bold")
    skipped = f", {counts['skip']} not applicable" if counts["skip"] else ""
    failed = f", {counts['fail']} failed" if counts["fail"] else ""
    lines.append(f"{verdict}: {counts['pass']} checks passed{failed}{skipped}, {proof.wall_s:.0f} s")
    if not proof.passed:
        lines.append("  mend    torchdeck up --repair; torchdeck doctor")
    return "\n".join(lines)


def render_status(statuses: Sequence[DeckStatus], *, num_others: int = 0, style: Style = PLAIN) -> str:
    """Return the decks, one block each."""
    blocks = []
    for status in statuses:
        head = f"{style(status.name, 'bold')}  {style(status.state, _STATE_COLOURS[status.state])}"
        stack = f"torch {status.torch} ({status.variant}), Python {status.python}" if status.torch else ""
        pairs = [
            ("address", status.address),
            ("stack", stack),
            ("project", status.project),
            ("environment", status.environment),
            ("note", status.detail),
        ]
        blocks.append(f"{head}\n{rows(pairs, style, '  ')}")
    if not blocks:
        blocks.append("no deck here: torchdeck up makes one")
    if num_others:
        blocks.append(f"{num_others} more: torchdeck status --all")
    return "\n\n".join(blocks)


def render_plan(plan: Any, preview: Preview, style: Style = PLAIN) -> str:
    """Return every command and file of a plan, as they would be carried out."""
    lines = [render_preview(preview, style), ""]
    for number, step in enumerate(plan.steps, 1):
        lines.append(style(f"{number}. {step.title}", "bold"))
        if step.argv:
            lines.append(f"   $ {shlex.join(step.argv)}")
        lines += [f"   writes {path}" for path in step.writes]
    return "\n".join(lines)


def render_upgrade(report: UpgradeReport, style: Style = PLAIN) -> str:
    """Return what an upgrade changes."""
    old, new = f"torch {report.old_torch} ({report.old_variant})", f"torch {report.new_torch} ({report.new_variant})"
    lines = [style(f"{report.deck}: {old} → {new}", "bold"), *(f"  note: {clean(text)}" for text in report.notes)]
    width = max((len(change.name) for change in report.changes), default=0)
    lines += [
        f"  {change.name:<{width}}  {change.old or '(none)':>14} → {change.new or '(removed)'}"
        for change in report.changes
    ]
    if not report.changes:
        lines.append("  nothing changes")
    elif report.download_bytes:
        lines.append(f"  download: at most {human_bytes(report.download_bytes)}")
    return "\n".join(lines)


def render_settings(
    values: Mapping[str, tuple[Any, str]],
    helps: Mapping[str, str],
    files: Sequence[str],
    *,
    with_origin: bool,
    style: Style = PLAIN,
) -> str:
    """Return the settings, each with its meaning or its origin."""
    lines = []
    width = max(len(name) for name in values)
    for name, (value, origin) in values.items():
        shown = "[]" if value == [] else repr(value) if not isinstance(value, bool) else str(value).lower()
        tail = f"({origin})" if with_origin else helps[name]
        lines.append(f"{name:<{width}} = {shown:<16} {style(tail, 'dim')}")
    lines += ["", f"files: {files[0]} (project), {files[1]} (user)"]
    return "\n".join(lines)
