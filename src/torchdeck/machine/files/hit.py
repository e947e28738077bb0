"""What a rule returns: a line and a finding. Where the file lies is added last, so that no rule needs its name."""

from __future__ import annotations

from torchdeck.machine.records import Finding, Severity

Hit = tuple[int, Finding]


def hit(
    line: int,
    rule: str,
    severity: Severity,
    title: str,
    *,
    cause: str = "",
    evidence: str | tuple[str, ...] = (),
    needs: str = "",
    mend: str | tuple[str, ...] = (),
) -> Hit:
    """Return a finding about one line."""
    return line, Finding(
        rule=rule,
        severity=severity,
        title=title,
        cause=cause,
        evidence=(evidence,) if isinstance(evidence, str) else evidence,
        needs=needs,
        mend=(mend,) if isinstance(mend, str) else mend,
    )
