"""One pass over a log: which patterns are found, where, and in which lines.

RE2's filter knows for each pattern which pieces of text it cannot do without, and looks for all of these at once. Most
blocks and most lines hold none; only a line that does is cleaned and asked for the patterns themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import re2

from torchdeck.machine.catalogue.kinds import signatures
from torchdeck.machine.explain.lines import MAX_CHARS, Line, clean_line

# What is kept of each pattern: enough to find lines that lie together, whatever the log's length.
_MAX_HITS = 64
_BLOCK_CHARS = 65_536
_GROUP = 8

# What looks decisive where no signature fits.
_DECISIVE = re2.compile(
    r"(?:^[\w.]+(?:Error|Exception|Interrupt)\b(?::|$)|\b(?:FATAL|fatal|Fatal)(?: error)?:|\berror: |^ERROR\b|\bERROR: "
    r"|\bCUDA error\b|NCCL WARN|Segmentation fault|core dumped|\bKilled\b|panic:|NVRM: Xid)"
)
_MAX_DECISIVE = 12
# torchrun's summary of who died first.
_FIRST_DEAD = re2.compile(r"^\s*rank\s*:\s*(\d{1,6}) \(local_rank")
_ROOT_CAUSE = re2.compile(r"Root Cause \(first observed failure\)")


@dataclass
class Scan:
    """What was seen of a log.

    Args:
        hits: For each pattern that was found, the first and the last lines with it.
        decisive: Lines that look decisive, first ones first.
        num_lines: How many lines there were.
        first_dead: The rank that died first, as torchrun says.
        memory: Lines with numbers of memory, for who judges them.
        root_cause: Whether torchrun's summary has named the root cause.
    """

    hits: dict[str, list[Line]] = field(default_factory=dict)
    decisive: list[Line] = field(default_factory=list)
    num_lines: int = 0
    first_dead: int | None = None
    memory: list[Line] = field(default_factory=list)
    root_cause: bool = False


_MEMORY = re2.compile(
    r"(?i)out of memory|tried to allocate|total capacity|reserved (?:in total )?by pytorch|mem(?:ory)?[ _]?alloc"
    r"|CUDA_ERROR_OUT_OF_MEMORY"
)


class Patterns:
    """Every pattern of the signatures, once, and what the scanner itself looks for."""

    def __init__(self) -> None:
        found: dict[str, None] = {}
        for signature in signatures():
            found.update(dict.fromkeys((*signature.all, *signature.any, *signature.none)))
        self.patterns = tuple(found)
        extra = [_MEMORY.pattern, _DECISIVE.pattern, _FIRST_DEAD.pattern, _ROOT_CAUSE.pattern]
        number = len(self.patterns)
        self.memory, self.decisive, self.first_dead, self.root_cause = range(number, number + len(extra))
        every = (*self.patterns, *extra)
        self._filter = re2.Filter()
        for pattern in every:
            self._filter.Add(pattern)
        self._filter.Compile()
        # Patterns that can do without any piece of text are potential in an empty one: they are asked block by block.
        self._always = frozenset(self._filter.Match("", True) or ())
        self._lax = tuple(re2.compile("(?m)" + _lax(every[index])) for index in sorted(self._always))

    def in_line(self, text: str) -> list[int]:
        """Return the numbers of the patterns that a cleaned line has."""
        return list(self._filter.Match(text) or ())

    def may_be_in(self, text: str) -> bool:
        """Whether a text may have one of the patterns that cannot do without a piece of text."""
        return len(self._filter.Match(text, True) or ()) > len(self._always)

    def others_in(self, block: str) -> list[re2._Regexp]:
        """Return those of the other patterns that a block may have."""
        return [pattern for pattern in self._lax if pattern.search(block) is not None]


# What a prefix of a line ends with, which is not taken away yet.
_BEGINNING = r"(?:^|[\]:|)] ?|[Z\d,-] )"


def _lax(pattern: str) -> str:
    """Return a laxer pattern: what is tied to the beginning of a line may also follow a prefix."""
    for before in ("(?:", "(?i)", "|", "("):
        pattern = pattern.replace(f"{before}^", f"{before}{_BEGINNING}")
    return _BEGINNING + pattern.removeprefix("^") if pattern.startswith("^") else pattern


@lru_cache(maxsize=1)
def patterns() -> Patterns:
    """Return the compiled patterns, once a process."""
    return Patterns()


def scan(lines: Iterable[tuple[int, str, str]]) -> Scan:
    """Look at every line once.

    Args:
        lines: Number, raw text and file of each.
    """
    seen = Scan()
    block: list[tuple[int, str, str]] = []
    size = 0
    for item in lines:
        block.append(item)
        size += len(item[1])
        if size >= _BLOCK_CHARS:
            _look(block, seen)
            block, size = [], 0
    _look(block, seen)
    return seen


def _look(block: list[tuple[int, str, str]], seen: Scan) -> None:
    """Look at a block of lines."""
    seen.num_lines += len(block)
    known = patterns()
    raws = [raw[: 2 * MAX_CHARS] for _, raw, _ in block]
    text = "\n".join(raws)
    others = known.others_in(text)
    if not others and not known.may_be_in(text):
        return

    def matters(text: str) -> bool:
        return known.may_be_in(text) or any(pattern.search(text) is not None for pattern in others)

    # Most lines show nothing, and a few together are asked at the price of one.
    for start in range(0, len(block), _GROUP):
        if matters("\n".join(raws[start : start + _GROUP])):
            for item, raw in zip(block[start : start + _GROUP], raws[start : start + _GROUP], strict=True):
                if matters(raw):
                    _look_at(item, seen, known)


def _look_at(item: tuple[int, str, str], seen: Scan, known: Patterns) -> None:
    """Look at one line that may matter."""
    number, raw, file = item
    text, rank = clean_line(raw)
    if not text:
        return
    line = Line(number, text, rank, file)
    for index in known.in_line(text):
        if index < len(known.patterns):
            _keep(seen.hits.setdefault(known.patterns[index], []), line)
        elif index == known.memory:
            _keep(seen.memory, line)
        elif index == known.decisive:
            if len(seen.decisive) < _MAX_DECISIVE:
                seen.decisive.append(line)
        elif index == known.root_cause:
            seen.root_cause = True
        elif seen.root_cause and seen.first_dead is None:
            match = _FIRST_DEAD.search(text)
            seen.first_dead = None if match is None else int(match.group(1))


def _keep(hits: list[Line], line: Line) -> None:
    """Keep the first half and the last half of what comes."""
    if len(hits) >= _MAX_HITS:
        del hits[_MAX_HITS // 2]
    hits.append(line)
