"""The places that torchdeck, pip and torch write to."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Place(Fact, frozen=True, kw_only=True):
    """A folder, or the nearest existing one above it.

    Args:
        path: The folder that is meant, the home folder folded to ``~``.
        exists: Whether it is there.
        writable: Whether files can be made in it, or it can be made.
        free_bytes: What this user may still write.
        total_bytes: The size of its file system.
        num_free_inodes: How many files can still be made; None where the file system does not count them.
        filesystem: Its type, such as ``ext4``.
        noexec: Whether programs and libraries in it may not be run.
    """

    path: str
    exists: bool
    writable: bool
    free_bytes: int
    total_bytes: int
    num_free_inodes: int | None
    filesystem: str | Missing
    noexec: bool | Missing


class Storage(Fact, frozen=True, kw_only=True):
    """The places that matter.

    Args:
        home: The user's home.
        home_set: Whether the variable HOME names it.
        tmp: Where temporary files go (TMPDIR, else ``/tmp``).
        shm: Shared memory, ``/dev/shm``.
        data: Where decks are made.
        cache: Where caches go.
    """

    home: Place | Missing
    home_set: bool
    tmp: Place | Missing
    shm: Place | Missing
    data: Place | Missing
    cache: Place | Missing
