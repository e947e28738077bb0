"""How one check ended, as a record that needs no package, and what an error says in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_DETAIL_CHARS = 400


class Skip(Exception):  # noqa: N818 - not an error: the reason why a check does not apply here
    """Raised by a check that does not apply on this machine; the message says why."""


class Wrong(Exception):  # noqa: N818 - read as "wrong: …"
    """Raised by a check whose figures are not what they must be."""


@dataclass(frozen=True)
class Result:
    """The fields of ``torchdeck.environment.records.Check``.

    Args:
        name: What was checked.
        subject: On what.
        outcome: ``pass``, ``fail`` or ``skip``.
        detail: The figure or the reason, in one line.
        wall_ms: How long it took.
    """

    name: str
    subject: str
    outcome: str
    detail: str = ""
    wall_ms: float = 0.0

    def fields(self) -> dict[str, str | float]:
        """Return the record as JSON takes it."""
        detail = " ".join(self.detail.split())
        if len(detail) > _MAX_DETAIL_CHARS:
            detail = detail[: _MAX_DETAIL_CHARS - 1] + "…"
        return {
            "name": self.name,
            "subject": self.subject,
            "outcome": self.outcome,
            "detail": detail,
            "wall_ms": round(self.wall_ms, 1),
        }


def first_error_line(error: BaseException) -> str:
    """Return the line that says most: of the innermost cause, a compiler's ``error:`` line before any other.

    torch wraps what a backend raised in one or two errors of its own, whose text begins with the backend's name
    and ends with advice; the cause is inside.
    """
    if isinstance(error, Wrong):
        return str(error)
    inner = _innermost(error)
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()]
    if not lines:
        return type(inner).__name__
    telling = next((line for line in lines if re.search(r"\b(fatal )?error:", line)), lines[0])
    return f"{type(inner).__name__}: {telling}"


def _innermost(error: BaseException) -> BaseException:
    seen = {id(error)}
    while True:
        cause = getattr(error, "inner_exception", None) or error.__cause__
        if not isinstance(cause, BaseException) or id(cause) in seen:
            return error
        seen.add(id(cause))
        error = cause
