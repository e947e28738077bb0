"""``torchdeck doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchdeck.cli.options import json_option, project_of

if TYPE_CHECKING:
    from torchdeck.machine.facts import Facts
    from torchdeck.machine.records import Finding


@click.command("doctor")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--python", type=click.Path(path_type=Path), help="Describe this Python, and the torch in it.")
@click.option("--facts", "facts_file", type=click.Path(path_type=Path), help="Judge a saved machine, not this one.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the facts of this machine to a file.")
@click.option("--deep", is_flag=True, help="Run real computations too: in the project's deck, or with --python.")
@click.option("--fix", is_flag=True, help="Carry out those mends that are safe and can be undone; asks first.")
@click.option("--rule", default="", metavar="RULE", help="With --fix: only this rule.")
@click.option("--dry-run", is_flag=True, help="With --fix: print the commands, and stop.")
@click.option("--yes", "-y", is_flag=True, help="With --fix: do not ask.")
@click.option("--watch", "watch_s", type=click.FloatRange(min=1), metavar="SECONDS", help="Repeat, and show changes.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings and for what is not known, too.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown, to paste into an issue.")
@click.option("--verbose", "-v", is_flag=True, help="Show the evidence of each finding, and what is fine.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    python: Path | None,
    facts_file: Path | None,
    save: Path | None,
    deep: bool,
    fix: bool,
    rule: str,
    dry_run: bool,
    yes: bool,
    watch_s: float | None,
    strict: bool,
    as_markdown: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find what is wrong, or will go wrong, on this machine. Imports no torch, changes nothing.

    With FILES, these are judged in its place: Dockerfile, Containerfile, compose.yaml, devcontainer.json,
    requirements.txt, pyproject.toml, environment.yml; of a folder those that lie directly in it.
    """
    from torchdeck.cli.console import note
    from torchdeck.cli.facts import facts_from
    from torchdeck.cli.files import judge_files
    from torchdeck.errors import EXIT_FINDINGS, EXIT_FINE
    from torchdeck.machine.judge import in_order, judge_by_subject

    _check(files, facts_file, python, save, deep=deep, fix=fix, watch_s=watch_s, fix_only=bool(rule or dry_run or yes))
    if watch_s is not None:
        _watch(watch_s, python)
    facts = None if files else facts_from(facts_file, python)
    if save is not None and facts is not None:
        from torchdeck.machine.facts import encode_facts

        save.write_bytes(encode_facts(facts))
        note(f"facts written to {save}")
    subjects = {} if facts is None else judge_by_subject(facts)
    findings = judge_files(files) if facts is None else in_order([one for found in subjects.values() for one in found])
    if deep:
        findings = [*_deep(python, as_json=as_json), *findings]
    fine = tuple(subject for subject, found in subjects.items() if not found) if verbose else ()
    _print(facts, findings, fine, as_json=as_json, as_markdown=as_markdown, verbose=verbose)
    if fix and facts is not None:
        findings = _fix(findings, facts, rule, dry_run=dry_run, yes=yes, python=python)
    grave = ("error", "warning", "unknown") if strict else ("error",)
    context.exit(EXIT_FINDINGS if any(finding.severity in grave for finding in findings) else EXIT_FINE)


def _check(
    files: tuple[Path, ...],
    facts_file: Path | None,
    python: Path | None,
    save: Path | None,
    *,
    deep: bool,
    fix: bool,
    watch_s: float | None,
    fix_only: bool,
) -> None:
    """Refuse what cannot go together.

    Raises:
        UsageError: Two options exclude each other.
    """
    from torchdeck.errors import UsageError

    if files and (facts_file or python or save or deep or fix or watch_s):
        raise UsageError("FILES are judged without a machine", needs="files, or the options that concern a machine")
    if facts_file and (deep or fix or watch_s):
        raise UsageError(
            "another machine's facts can be judged, no more", needs="--facts without --deep, --fix, --watch"
        )
    if fix_only and not fix:
        raise UsageError("--rule, --dry-run and --yes belong to --fix", mend="torchdeck doctor --fix --dry-run")


def _print(
    facts: Facts | None,
    findings: list[Finding],
    fine: tuple[str, ...],
    *,
    as_json: bool,
    as_markdown: bool,
    verbose: bool,
) -> None:
    from torchdeck.cli.console import out_style, say, say_json
    from torchdeck.machine.fixes.plan import fixable_rules
    from torchdeck.machine.records import FindingsReport
    from torchdeck.render.deck import rows
    from torchdeck.render.facts import fact_rows
    from torchdeck.render.findings import render_findings, render_markdown

    if as_json:
        say_json(FindingsReport(findings=tuple(findings)))
    elif as_markdown:
        say(render_markdown(facts, findings))
    else:
        if facts is not None:
            say(rows(fact_rows(facts), out_style()))
            say()
        fixable = facts is not None and any(finding.rule in fixable_rules() for finding in findings)
        say(render_findings(findings, out_style(), verbose=verbose, fixable=fixable, fine=fine))


def _deep(python: Path | None, *, as_json: bool) -> list[Finding]:
    from torchdeck.cli.console import err_style, note
    from torchdeck.cli.progress import Progress
    from torchdeck.environment.deck.deep import check_deeply, findings_of
    from torchdeck.render.deck import render_proof

    with Progress(err_style(), quiet=as_json) as progress:
        progress.step("running real computations")
        proof = check_deeply(project_of(None), python, progress)
    if not as_json:
        note(render_proof(proof, err_style()))
        note()
    return findings_of(proof)


def _fix(
    findings: list[Finding], facts: Facts, rule: str, *, dry_run: bool, yes: bool, python: Path | None
) -> list[Finding]:
    """Mend what can be mended safely, and judge again.

    Raises:
        UsageError: The rule has no fix, or there is nobody to ask.
    """
    import shlex
    import sys

    from torchdeck.cli.console import note
    from torchdeck.cli.facts import facts_from
    from torchdeck.errors import UsageError
    from torchdeck.machine.fixes import carry_out, plan_fixes
    from torchdeck.machine.fixes.plan import fixable_rules
    from torchdeck.machine.judge import judge

    if rule and rule not in fixable_rules():
        raise UsageError(
            f"{rule} has no mend that is safe to run unasked",
            needs=f"one of: {', '.join(fixable_rules())}",
            mend=f"torchdeck explain {rule}",
        )
    fixes = plan_fixes(findings, facts, rule)
    if not fixes:
        note("nothing here has a mend that is safe to run unasked")
        return findings
    for planned in fixes:
        note(f"{planned.rule}: {planned.title}")
        for step in planned.steps:
            note(f"  $ {shlex.join(step.argv)}" + (f"   (a copy of {step.backup} is kept)" if step.backup else ""))
        note(f"  undo: {planned.undo}")
    if dry_run:
        return findings
    if not yes and not sys.stdin.isatty():
        raise UsageError("a mend needs a yes", found="no terminal to ask on", mend="torchdeck doctor --fix --yes")
    for planned in fixes:
        if yes or click.confirm(f"Mend {planned.rule}?", err=True):
            for text in carry_out(planned):
                note(f"  kept: {text}")
    again = judge(facts_from(None, python))
    gone = {finding.rule for finding in findings} - {finding.rule for finding in again}
    left = {planned.rule for planned in fixes} & {finding.rule for finding in again}
    note(
        f"judged again: gone {', '.join(sorted(gone)) or 'nothing'}; still there {', '.join(sorted(left)) or 'nothing'}"
    )
    return again


def _watch(every_s: float, python: Path | None) -> None:
    """Judge again and again, and say what comes and what goes; Ctrl-C ends."""
    import time

    from torchdeck.cli.console import out_style, say
    from torchdeck.machine.judge import judge
    from torchdeck.machine.probes import gather
    from torchdeck.render.findings import render_findings

    before: dict[str, Finding] | None = None
    while True:
        now = {f"{finding.severity}[{finding.rule}]": finding for finding in judge(gather(python))}
        clock = time.strftime("%H:%M:%S")
        if before is None:
            say(f"{clock}\n{render_findings(list(now.values()), out_style())}")
        else:
            for key in now.keys() - before.keys():
                say(f"{clock} new\n{render_findings([now[key]], out_style(), counted=False)}")
            for key in before.keys() - now.keys():
                say(f"{clock} gone: {key}")
        before = now
        time.sleep(every_s)
