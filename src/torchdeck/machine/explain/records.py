"""The frozen types of an explanation."""

from __future__ import annotations

import msgspec

from torchdeck.machine.records import Severity


class SeenLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log.

    Args:
        line: Its number, from 1; within its file where several were read.
        text: The line without control codes and prefixes, cut where it is very long.
        file: The file it stands in; empty for standard input.
    """

    line: int
    text: str
    file: str = ""


class MendStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to mend it: a command, or a step that is none; ``note`` says what the command does."""

    command: str = ""
    step: str = ""
    note: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One cause that the log shows.

    Args:
        rule: The kind's permanent id.
        confidence: 0 to 1, how surely it is this one.
        evidence: The lines that show it.
        mend: Best first, with the values of this log filled in.
        tell_apart: How to tell it from what prints the same.
        avoid: What not to do.
    """

    rule: str
    severity: Severity
    confidence: float
    title: str
    cause: str
    evidence: tuple[SeenLine, ...]
    mend: tuple[MendStep, ...]
    tell_apart: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()


class ExplainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``torchdeck explain --json`` prints.

    Args:
        findings: The causes, best first.
        not_known: Where no cause was found: the lines that look decisive.
        num_lines: How many lines were read.
    """

    schema: str = "torchdeck.findings/1"
    findings: tuple[Explanation, ...] = ()
    not_known: tuple[SeenLine, ...] = ()
    num_lines: int = 0
