"""The frozen types of this wing's reports: findings, and the answer of the stack resolver."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "unknown", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "unknown", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, will go wrong, or could not be judged.

    Args:
        rule: Permanent kebab-case id of the cause in the catalogue.
        severity: ``error``, ``warning``, ``unknown`` (a fact is missing) or ``info``.
        title: What is the matter, in one line, with the values at hand.
        cause: Why that is so.
        evidence: The facts it rests on, each with where it was read.
        needs: What would be right instead.
        mend: Exact commands, best first.
    """

    rule: str
    severity: Severity
    title: str
    cause: str = ""
    evidence: tuple[str, ...] = ()
    needs: str = ""
    mend: tuple[str, ...] = ()


class FindingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints for findings, best first."""

    schema: str = "torchdeck.findings/1"
    findings: tuple[Finding, ...] = ()
