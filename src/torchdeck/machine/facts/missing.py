"""The two bases of every fact: a frozen record, and the value that stands for what could not be known."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", tag=str.lower):
    """A frozen record of something true about a machine. Field names carry their unit."""


class Missing(Fact, frozen=True, kw_only=True, tag="missing"):
    """Something that could not be known, and why. Absent is not zero: a rule that meets one says *unknown*."""

    reason: str


def known(value: T | Missing) -> T | None:
    """Return the value, or None where it is missing."""
    return None if isinstance(value, Missing) else value
