"""One pass over a log: which patterns are found, where, and in which lines.

All patterns stand in one RE2 set. Blocks of lines are first looked at as a whole by a laxer set, so that the bulk of a
log, which shows nothing, costs one automaton run.
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
_MAX_MEM_BYTES = 64 << 20

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
    """

    hits: dict[str, list[Line]] = field(default_factory=dict)
    decisive: list[Line] = field(default_factory=list)
    num_lines: int = 0
    first_dead: int | None = None
    memory: list[Line] = field(default_factory=list)


_MEMORY = re2.compile(
    r"(?i)out of memory|tried to allocate|total capacity|reserved (?:in total )?by pytorch|mem(?:ory)?[ _]?alloc"
    r"|CUDA_ERROR_OUT_OF_MEMORY"
)


class Patterns:
    """Every pattern of the signatures, once, in two sets: line by line, and for whole blocks."""

    def __init__(self) -> None:
        found: dict[str, None] = {}
        for signature in signatures():
            found.update(dict.fromkeys((*signature.all, *signature.any, *signature.none)))
        self.patterns = tuple(found)
        options = re2.Options()
        options.max_mem = _MAX_MEM_BYTES
        options.log_errors = False
        self._lines, self._blocks = re2.Set.SearchSet(options), re2.Set.SearchSet(options)
        extra = [_MEMORY.pattern, _DECISIVE.pattern, _FIRST_DEAD.pattern, _ROOT_CAUSE.pattern]
        for pattern in self.patterns:
            self._lines.Add(pattern)
        for pattern in (*self.patterns, *extra):
            # In a block a line still has its prefixes, so nothing may be tied to its beginning.
            self._blocks.Add("(?m)" + _untied(pattern))
        self._lines.Compile()
        self._blocks.Compile()

    def in_line(self, text: str) -> list[int]:
        """Return the numbers of the patterns that a line has."""
        return list(self._lines.Match(text) or ())

    def in_block(self, text: str) -> bool:
        """Whether a block may hold anything of interest."""
        return bool(self._blocks.Match(text))


def _untied(pattern: str) -> str:
    """Return a laxer pattern that is not tied to the beginning of a line."""
    return pattern.replace("(?:^", "(?:").removeprefix("^").replace("(?i)^", "(?i)").replace("|^", "|")


@lru_cache(maxsize=1)
def patterns() -> Patterns:
    """Return the compiled patterns, once a process."""
    return Patterns()


def scan(lines: Iterable[tuple[int, str, str]]) -> Scan:
    """Look at every line once.

    Args:
        lines: Number, raw text and file of each.
    """
    seen, known = Scan(), patterns()
    expecting_rank = False
    block: list[tuple[int, str, str]] = []
    size = 0

    def look(block: list[tuple[int, str, str]]) -> None:
        nonlocal expecting_rank
        seen.num_lines += len(block)
        if not known.in_block("\n".join(raw[: 2 * MAX_CHARS] for _, raw, _ in block)):
            return
        for number, raw, file in block:
            text, rank = clean_line(raw)
            if not text:
                continue
            line = Line(number, text, rank, file)
            for index in known.in_line(text):
                _keep(seen.hits.setdefault(known.patterns[index], []), line)
            if len(seen.decisive) < _MAX_DECISIVE and _DECISIVE.search(text):
                seen.decisive.append(line)
            if _MEMORY.search(text):
                _keep(seen.memory, line)
            expecting_rank = expecting_rank or _ROOT_CAUSE.search(text) is not None
            if expecting_rank and seen.first_dead is None:
                match = _FIRST_DEAD.search(text)
                if match is not None:
                    seen.first_dead = int(match.group(1))

    for item in lines:
        block.append(item)
        size += len(item[1])
        if size >= _BLOCK_CHARS:
            look(block)
            block, size = [], 0
    look(block)
    return seen


def _keep(hits: list[Line], line: Line) -> None:
    """Keep the first half and the last half of what comes."""
    if len(hits) >= _MAX_HITS:
        del hits[_MAX_HITS // 2]
    hits.append(line)
