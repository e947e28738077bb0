"""Which kinds a log can mean, each with how surely, and in the order in which they are told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import re2

from torchdeck.machine.catalogue.kinds import Signature, same_text, signatures
from torchdeck.machine.explain.lines import Line
from torchdeck.machine.explain.memory import judge_memory
from torchdeck.machine.explain.scan import Scan
from torchdeck.machine.explain.watchdog import judge_watchdog

# What a fact of the machine adds to the kind that it foretells, and what the rank that died first adds to its lines.
_FACT_BONUS = 25
_FIRST_DEAD_BONUS = 10
# A kind that no signature shows, and that the facts foretell beside one that prints the same, stands this far below.
_ONLY_FORETOLD = 10
# Where the likeliest are closer than this, the facts of the machine are asked.
_CLOSE = 20
# Kinds below this are never told.
_FLOOR = 40


@dataclass
class Candidate:
    """A kind that the log can mean.

    Args:
        kind: Its id.
        weight: 0 to 100.
        lines: The lines that show it.
        values: What the patterns' named groups caught.
    """

    kind: str
    weight: float
    lines: list[Line]
    values: dict[str, str]

    @property
    def confidence(self) -> float:
        """Return the weight as a number from 0 to 1."""
        return round(min(99.0, self.weight) / 100, 2)


def find_candidates(seen: Scan, foretold: Collection[str] = ()) -> list[Candidate]:
    """Return the kinds that a scanned log can mean, the likeliest first.

    Args:
        seen: What was found in the log.
        foretold: The kinds that the facts of the machine foretell.
    """
    by_kind: dict[str, Candidate] = {}
    for signature in signatures():
        found = _apply(signature, seen)
        if found is not None:
            _merge(by_kind, found)
    for kind, weight, lines, values in judge_memory(seen.memory, set(by_kind)):
        _merge(by_kind, Candidate(kind, weight, lines, values))
    judged = judge_watchdog(seen.hits)
    if judged is not None:
        _merge(by_kind, Candidate(*judged))
    _add_foretold(by_kind, foretold)
    for candidate in by_kind.values():
        if candidate.kind in foretold:
            candidate.weight += _FACT_BONUS
        if seen.first_dead is not None and any(line.rank == seen.first_dead for line in candidate.lines):
            candidate.weight += _FIRST_DEAD_BONUS
    candidates = [candidate for candidate in by_kind.values() if candidate.weight >= _FLOOR]
    # Of causes that are about equally sure the earlier one is the first, and the later ones its echoes.
    return sorted(candidates, key=lambda one: (-_step(one.weight), one.lines[0].number, -one.weight))


def _add_foretold(by_kind: dict[str, Candidate], foretold: Collection[str]) -> None:
    """Add the kinds that the facts foretell and that print the same text as one that the log shows."""
    for group in same_text():
        shown = [by_kind[kind] for kind in group if kind in by_kind]
        if shown:
            best = max(shown, key=lambda one: one.weight)
            for kind in group.intersection(foretold) - set(by_kind):
                by_kind[kind] = Candidate(kind, best.weight - _ONLY_FORETOLD, best.lines, best.values)


def is_ambiguous(candidates: list[Candidate]) -> bool:
    """Whether the facts of the machine could change what is told first."""
    if not candidates:
        return False
    first = candidates[0]
    close = any(first.weight - other.weight < _CLOSE for other in candidates[1:])
    return close or any(first.kind in group for group in same_text())


def _step(weight: float) -> int:
    return int(weight // 7)


def _apply(signature: Signature, seen: Scan) -> Candidate | None:
    """Return the candidate of a signature that the log satisfies."""
    if any(pattern in seen.hits for pattern in signature.none):
        return None
    if signature.any and not any(pattern in seen.hits for pattern in signature.any):
        return None
    groups = [seen.hits.get(pattern) for pattern in signature.all]
    if not all(groups):
        return None
    lines = _together([group for group in groups if group], signature.within)
    if lines is None:
        return None
    values: dict[str, str] = {}
    patterns = [*signature.all, *signature.any]
    shown = [*lines, *(seen.hits[pattern][0] for pattern in signature.any if pattern in seen.hits)]
    for pattern in patterns:
        if "(?P<" in pattern:
            _extract(pattern, shown, values)
    return Candidate(signature.kind, float(signature.weight), lines, values)


def _together(groups: list[list[Line]], within: int) -> list[Line] | None:
    """Return one line of each group such that all lie close to each other, the earliest such."""
    for first in groups[0]:
        chosen = [first]
        for group in groups[1:]:
            near = [line for line in group if line.file == first.file and abs(line.number - first.number) <= within]
            if not near:
                break
            chosen.append(min(near, key=lambda line: abs(line.number - first.number)))
        else:
            return sorted(chosen, key=lambda line: line.number)
    return None


def _extract(pattern: str, lines: list[Line], values: dict[str, str]) -> None:
    for line in lines:
        match = re2.search(pattern, line.text)
        if match is not None:
            for name, value in match.groupdict().items():
                if value and name not in values:
                    values[name] = value
            return


def _merge(by_kind: dict[str, Candidate], found: Candidate) -> None:
    """Let several signatures of one kind strengthen it a little; the surest decides."""
    known = by_kind.get(found.kind)
    if known is None:
        by_kind[found.kind] = found
        return
    high, low = (known, found) if known.weight >= found.weight else (found, known)
    numbers = {(line.file, line.number) for line in high.lines}
    more = [line for line in low.lines if (line.file, line.number) not in numbers]
    lines = sorted([*high.lines, *more], key=lambda line: line.number)[:8]
    weight = high.weight + (min(3.0, low.weight / 30) if more else 0.0)
    by_kind[found.kind] = Candidate(found.kind, weight, lines, {**low.values, **high.values})
