"""The finding of a rule that lacks its facts."""

from __future__ import annotations

from torchdeck.machine.facts import Missing
from torchdeck.machine.records import Finding


def unknown(rule: str, what: str, missing: Missing) -> Finding:
    """Return the finding that says what could not be judged, and why."""
    return Finding(
        rule=rule,
        severity="unknown",
        title=f"not known: {what}",
        cause="A fact that this rule needs could not be gathered.",
        evidence=(missing.reason,),
    )
