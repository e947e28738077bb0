"""What a memory snapshot of torch says, in sums."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact


class Snapshot(Fact, frozen=True, kw_only=True):
    """What a snapshot says.

    Args:
        reserved_bytes: What torch has from the driver.
        active_bytes: What tensors hold.
        free_bytes: What is reserved and not held.
        largest_free_bytes: The largest piece of that.
        holders: Lines of the program and the bytes that they allocated, the largest first; empty without a history.
    """

    reserved_bytes: int
    active_bytes: int
    free_bytes: int
    largest_free_bytes: int
    holders: tuple[tuple[str, int], ...] = ()
