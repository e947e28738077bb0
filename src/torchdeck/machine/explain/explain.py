"""The whole way from lines to findings."""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Iterable

from torchdeck.machine.catalogue.kinds import Kind, Mend, kind_named
from torchdeck.machine.explain.candidates import Candidate, find_candidates, is_ambiguous
from torchdeck.machine.explain.lines import Line, lines_of, numbered
from torchdeck.machine.explain.records import ExplainReport, Explanation, MendStep, SeenLine
from torchdeck.machine.explain.scan import Scan, scan

_MAX_FINDINGS = 6
_MAX_TEXT = 400


def explain(
    lines: Iterable[tuple[int, str, str]],
    *,
    language: str = "en",
    foretold: Callable[[], Collection[str]] = tuple,
) -> ExplainReport:
    """Explain a log.

    Args:
        lines: Number, raw text and file of each line.
        language: ``en`` or ``zh``.
        foretold: Returns the kinds that the facts of the machine foretell; asked only where it decides something.
    """
    seen = scan(lines)
    candidates = find_candidates(seen)
    if is_ambiguous(candidates):
        known = foretold()
        candidates = find_candidates(seen, known) if known else candidates
    candidates = candidates[:_MAX_FINDINGS]
    return ExplainReport(
        findings=tuple(_explanation(candidate, number, language) for number, candidate in enumerate(candidates)),
        not_known=() if candidates else _decisive(seen),
        num_lines=seen.num_lines,
    )


def explain_ids(text: str) -> dict[str, object]:
    """Return the findings of a text as JSON can hold them, for scoring."""
    report = explain(numbered(lines_of(text)))
    return {
        "schema": report.schema,
        "findings": [{"rule": finding.rule, "severity": finding.severity} for finding in report.findings],
    }


def _explanation(candidate: Candidate, number: int, language: str) -> Explanation:
    kind = kind_named(candidate.kind)
    assert kind is not None, candidate.kind
    page = kind.page(language)
    return Explanation(
        rule=kind.id,
        # What is likelier stands above it: the others are told, and do not fail the command.
        severity=kind.severity if number == 0 else "info",
        confidence=candidate.confidence,
        title=page.title,
        cause=page.about,
        evidence=tuple(_shown(line) for line in candidate.lines),
        mend=mends_of(kind, language, candidate.values),
        tell_apart=page.tell,
        avoid=page.avoid,
    )


def mends_of(kind: Kind, language: str, values: dict[str, str] | None = None) -> tuple[MendStep, ...]:
    """Return the mends of a kind with what is known filled in."""
    return tuple(_step(mend, language, values or {}) for mend in kind.mend)


def _step(mend: Mend, language: str, values: dict[str, str]) -> MendStep:
    words = mend.zh if language == "zh" else mend.en
    if not mend.command:
        return MendStep(step=words)
    return MendStep(command=fill(mend.command, {**mend.default, **values}), note=words)


def fill(command: str, values: dict[str, str]) -> str:
    """Fill the braces of a command; a value from a log may hold nothing that a shell would act on."""
    parts = []
    for literal, name, _, _ in string.Formatter().parse(command):
        parts.append(literal)
        if name is not None:
            value = values.get(name, f"<{name}>")
            safe = all(character.isalnum() or character in "._-+/:=,@ <>~" for character in value)
            parts.append(value if safe else f"<{name}>")
    return "".join(parts)


def _shown(line: Line) -> SeenLine:
    text = "".join(character if character.isprintable() or character == "\t" else "�" for character in line.text)
    return SeenLine(
        line=line.number, text=text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…", file=line.file
    )


def _decisive(seen: Scan) -> tuple[SeenLine, ...]:
    return tuple(_shown(line) for line in seen.decisive)
