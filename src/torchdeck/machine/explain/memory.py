"""An out-of-memory, judged by its own numbers: too large, in pieces, growing, or somebody else's.

torch's message since 2.1 names what is free, what this process has, what is allocated and what is reserved but not
allocated; before, it named total, allocated, free and reserved. The arithmetic is the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import re2

from torchdeck.machine.explain.lines import Line

_UNITS = {"bytes": 1.0, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_SIZE = r"([\d.]{1,12}) (bytes|[KMGT]i?B)"
_TRIED = re2.compile(r"(?i)tried to allocate " + _SIZE)
_TOTAL = re2.compile(r"(?i)total capaci?ty of " + _SIZE + r"|" + _SIZE + r" total capacity")
_FREE = re2.compile(r"(?i)of which " + _SIZE + r" is free|" + _SIZE + r" free")
_OWN = re2.compile(r"(?i)this process has " + _SIZE + r" memory in use")
_ALLOCATED = re2.compile(r"(?i)" + _SIZE + r" (?:is )?(?:already )?allocated(?: by pytorch)?")
_PIECES = re2.compile(r"(?i)" + _SIZE + r" is reserved by pytorch but unallocated")
_RESERVED = re2.compile(r"(?i)" + _SIZE + r" reserved in total by pytorch")
_OTHERS = re2.compile(r"(?i)process \d{1,9} has " + _SIZE + r" memory in use")
_STEP = re2.compile(
    r"(?i)(?:step|iter(?:ation)?)\D{0,3}(\d{1,9}).*mem\w*[ _]?alloc\w*\D{1,4}([\d.]{1,12}) ?(bytes|[KMGT]i?B)"
)

# Someone else holds this part of the GPU, or pieces could have held the request this often over.
_OTHERS_FRAC = 0.15
_MIN_GROWTH_STEPS = 4
_WRAPPED = 4
_GROWTH_FRAC = 0.25

Judged = tuple[str, float, list[Line], dict[str, str]]


@dataclass(frozen=True)
class Numbers:
    """What one message says, in bytes; None where it does not."""

    tried: float | None
    total: float | None
    free: float | None
    own: float | None
    allocated: float | None
    pieces: float | None
    others: float | None


def read_numbers(text: str) -> Numbers:
    """Read the numbers of one out-of-memory message, of whichever torch release."""
    allocated, reserved = _bytes(_ALLOCATED, text), _bytes(_RESERVED, text)
    pieces = _bytes(_PIECES, text)
    if pieces is None and reserved is not None and allocated is not None:
        pieces = max(0.0, reserved - allocated)
    own = _bytes(_OWN, text)
    total, free, others = _bytes(_TOTAL, text), _bytes(_FREE, text), _bytes(_OTHERS, text)
    if own is None and others is not None and allocated is not None and others >= allocated + (pieces or 0.0):
        # In a container the process that is named by another number is this one, and the message names no own part.
        own, others = others, None
    held = own if own is not None else reserved
    if others is None and None not in (total, free, held):
        assert total is not None and free is not None and held is not None
        others = max(0.0, total - free - held)
    return Numbers(_bytes(_TRIED, text), total, free, own, allocated, pieces, others)


def judge_memory(lines: list[Line], found: set[str]) -> list[Judged]:
    """Return the kinds that the numbers of a log mean, each with a weight.

    Args:
        lines: The lines of the log that speak of memory.
        found: The kinds that signatures found already.
    """
    judged: list[Judged] = []
    for line in lines:
        if _TRIED.search(line.text) is None:
            continue
        # Where a table or a notebook has wrapped the message, its other numbers stand in the next lines.
        rest = [other.text for other in lines if other.file == line.file and 0 < other.number - line.number <= _WRAPPED]
        numbers = read_numbers(" ".join([line.text, *rest]))
        judged.append((*_judge_one(numbers), [line], _values(numbers)))
        break  # the first one is the cause, whatever dies after it
    grown = _growth(lines)
    if grown and (judged or "oom-capacity" in found):
        judged.append(("tensors-retained-across-steps", 96.0, grown, {}))
    return judged


def _judge_one(numbers: Numbers) -> tuple[str, float]:
    total, tried = numbers.total, numbers.tried or 0.0
    if total and numbers.others is not None and numbers.others > _OTHERS_FRAC * total:
        return "gpu-memory-held-by-other-process", 93.0
    if numbers.pieces is not None and numbers.pieces > max(tried, 0.0) and total and numbers.pieces > 0.05 * total:
        return "oom-fragmentation", 93.0
    return "oom-capacity", 85.0 if total else 70.0


def _growth(lines: list[Line]) -> list[Line]:
    """Return the lines of a log that show memory growing step by step; empty where it does not."""
    points = []
    for line in lines:
        match = _STEP.search(line.text)
        if match is not None:
            points.append((int(match.group(1)), float(match.group(2)) * _UNITS[match.group(3).lower()], line))
    if len(points) < _MIN_GROWTH_STEPS:
        return []
    sizes = [size for _, size, _ in points]
    # The first steps fill caches; from then on a sound loop stays where it is.
    later = sizes[1:]
    grows = all(after > before for before, after in itertools.pairwise(later))
    if grows and later[-1] > (1 + _GROWTH_FRAC) * later[0]:
        return [points[0][2], points[-1][2]]
    return []


def _bytes(pattern: re2._Regexp, text: str) -> float | None:
    match = pattern.search(text)
    if match is None:
        return None
    groups = [group for group in match.groups() if group is not None]
    try:
        return float(groups[0]) * _UNITS[groups[1].lower()]
    except (ValueError, KeyError, IndexError):
        return None


def _values(numbers: Numbers) -> dict[str, str]:
    named = {"tried": numbers.tried, "total": numbers.total, "free": numbers.free, "pieces": numbers.pieces}
    return {name: f"{value / 2**30:.2f} GiB" for name, value in named.items() if value is not None}
