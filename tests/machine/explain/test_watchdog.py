"""Time-outs of several ranks, judged together."""

from __future__ import annotations

from torchdeck.machine.explain import explain
from torchdeck.machine.explain.lines import lines_of, numbered

LINE = (
    "[rank{rank}]:[E1102 10:11:12.345 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={number}, OpType={kind}, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for "
    "600021 milliseconds before timing out."
)


def first(*waiting: tuple[int, int, str]) -> str:
    text = "\n".join(LINE.format(rank=rank, number=number, kind=kind) for rank, number, kind in waiting)
    found = explain(numbered(lines_of(text))).findings
    return found[0].rule if found else ""


def test_ranks_that_wait_for_different_collectives_are_out_of_step() -> None:
    assert first((0, 4711, "ALLREDUCE"), (1, 4712, "ALLREDUCE")) == "ranks-out-of-step"
    assert first((0, 4711, "ALLREDUCE"), (1, 4711, "ALLGATHER")) == "ranks-out-of-step"


def test_two_ranks_that_wait_for_the_same_one_do_not_prove_it() -> None:
    text = "\n".join(LINE.format(rank=rank, number=4711, kind="ALLREDUCE") for rank in (0, 1))
    found = explain(numbered(lines_of(text))).findings
    assert all(finding.confidence < 0.9 for finding in found if finding.rule == "ranks-out-of-step")
