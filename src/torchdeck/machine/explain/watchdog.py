"""NCCL's watchdog, judged over all ranks: those that wait for different collectives are out of step.

Each rank names the collective that it gave up waiting for. Where two of them name different ones, no transport is at
fault: the program called different things on different ranks.
"""

from __future__ import annotations

import re2

from torchdeck.machine.explain.lines import Line

_TIMEOUT = re2.compile(r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,12}), OpType=(\w{1,40})")
_RANK = re2.compile(r"\[(?:PG [^\]]{0,60} )?Rank (\d{1,6})\]")
_OUT_OF_STEP = 93.0


def judge_watchdog(hits: dict[str, list[Line]]) -> tuple[str, float, list[Line], dict[str, str]] | None:
    """Return the kind that the watchdog's lines of several ranks mean together; None where they do not tell."""
    waiting: dict[int, tuple[str, str, Line]] = {}
    for lines in hits.values():
        for line in lines:
            match = _TIMEOUT.search(line.text)
            if match is None:
                continue
            named = _RANK.search(line.text)
            rank = int(named.group(1)) if named is not None else line.rank
            if rank is not None and rank not in waiting:
                waiting[rank] = (match.group(1), match.group(2), line)
    if len({(number, kind) for number, kind, _ in waiting.values()}) < 2:
        return None
    shown = sorted((line for _, _, line in waiting.values()), key=lambda line: line.number)[:4]
    first, second = sorted(waiting)[:2]
    values = {"rank": str(first), "other": str(second)}
    return "ranks-out-of-step", _OUT_OF_STEP, shown, values
