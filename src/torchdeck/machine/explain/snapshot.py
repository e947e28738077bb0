"""A memory snapshot, judged: is the memory held by live tensors, or lost in pieces between them."""

from __future__ import annotations

from torchdeck.machine.catalogue.kinds import kind_named
from torchdeck.machine.explain.records import ExplainReport, Explanation, SeenLine
from torchdeck.machine.facts.memory_snapshot import Snapshot

# Beyond this part of what torch has reserved, what lies free in pieces is worth more than a smaller batch.
_PIECES_FRAC = 0.15


def explain_snapshot(snapshot: Snapshot, language: str = "en") -> ExplainReport:
    """Return what a snapshot means: fragmentation, or memory that is really held, and by which lines."""
    from torchdeck.machine.explain.explain import mends_of

    lost = snapshot.free_bytes > _PIECES_FRAC * max(1, snapshot.reserved_bytes)
    in_pieces = lost and snapshot.largest_free_bytes < snapshot.free_bytes / 2
    kind = kind_named("oom-fragmentation" if in_pieces else "oom-capacity")
    assert kind is not None
    page = kind.page(language)
    texts = [
        f"reserved {_gib(snapshot.reserved_bytes)}, held by tensors {_gib(snapshot.active_bytes)}, free in pieces "
        f"{_gib(snapshot.free_bytes)}, the largest of them {_gib(snapshot.largest_free_bytes)}",
        *(f"{_gib(size)} allocated at {name}" for name, size in snapshot.holders),
    ]
    finding = Explanation(
        rule=kind.id,
        # A snapshot is a picture, not a failure: nothing says that this program has died.
        severity="info",
        confidence=0.9 if in_pieces or not lost else 0.6,
        title=page.title,
        cause=page.about,
        evidence=tuple(SeenLine(line=number, text=text) for number, text in enumerate(texts, 1)),
        mend=mends_of(kind, language),
        tell_apart=page.tell,
        avoid=page.avoid,
    )
    return ExplainReport(findings=(finding,))


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.2f} GiB"
