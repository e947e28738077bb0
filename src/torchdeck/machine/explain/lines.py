"""A line of a log without what others put before it: colours, time stamps, ranks, pods, containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import re2

# A line beyond this is cut: what identifies an error stands at its beginning.
MAX_CHARS = 4000
_MAX_PREFIXES = 5

_ANSI = re2.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_RANK = re2.compile(
    r"^(?:\[(?:rank|default|local_rank |worker )(\d{1,5})\]:?|\(?[Rr]ank[ =:]?(\d{1,5})\)?[:>|]"
    r"|\[(\d{1,4})\](?: |:)(?:\[|: ))\s?"
)
# One automaton for all of them: most lines have none, and are asked once.
_PREFIX = re2.compile(
    "^(?:"
    + "|".join(
        (
            # ISO time, with or without brackets and what often follows: 2026-11-02T10:11:12.345Z
            r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t:,|-]{0,3}",
            r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[ \t]",
            # syslog and journal: Nov  2 10:11:12 host program[123]:
            r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,64} [\w./@-]{1,48}(?:\[\d{1,7}\])?: ",
            r"\[ {0,6}\d{1,8}\.\d{3,6}\] ",  # the kernel's ring buffer
            r"\[pod/[^\]]{1,200}\] ",  # kubectl logs --prefix
            r"[A-Za-z0-9][\w.-]{0,62} {0,20}\| ",  # docker compose, worker-3 |
            r"\d{1,4}: ",  # srun --label
            r"\((?:[\w.-]{1,40},? )?(?:pid|ip)=[^)]{1,80}\) ",  # Ray
            r"(?:stdout|stderr) [FP] ",  # a container runtime's own log files
        )
    )
    + ")"
)


@dataclass(frozen=True)
class Line:
    """One line.

    Args:
        number: From 1, within its file.
        text: Without prefixes, control codes and trailing space.
        rank: The rank that printed it, where its prefix says so.
        file: Where it stands; empty for standard input.
    """

    number: int
    text: str
    rank: int | None = None
    file: str = ""


def clean_line(raw: str) -> tuple[str, int | None]:
    """Return a line without its prefixes, and the rank that one of them named."""
    text = raw[:MAX_CHARS]
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        # A progress bar draws over itself; what was drawn last is what one sees.
        text = next((part for part in reversed(text.split("\r")) if part.strip()), "")
    rank = None
    for _ in range(_MAX_PREFIXES):
        match = _RANK.match(text) if text[:1] in "[(Rr" else None
        if match is not None:
            rank = int(next(group for group in match.groups() if group is not None))
        else:
            match = _PREFIX.match(text)
        if match is None or match.end() >= len(text):
            break
        text = text[match.end() :]
    return text.rstrip(), rank


def lines_of(text: str) -> Iterator[str]:
    """Return the raw lines of a text."""
    yield from text.split("\n")


def numbered(raws: Iterable[str], file: str = "") -> Iterator[tuple[int, str, str]]:
    """Return raw lines with their numbers and their file."""
    for number, raw in enumerate(raws, 1):
        yield number, raw, file
