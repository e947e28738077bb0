"""The thresholds, together, each with its reason."""

from __future__ import annotations

import msgspec

_GB = 10**9
_MIB = 2**20


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is too little.

    Args:
        deck_bytes: Space for one deck: 5.4 GB measured for torch 2.6.0+cu124 with JupyterLab, 3.1 GB of it also in
            uv's cache where that lies on another disk.
        tmp_bytes: Space for temporary files: the largest wheel of a stack is 0.9 GB (torch itself).
        cache_bytes: Space for compile caches: a few models of Inductor take some 100 MB.
        shm_bytes: Shared memory: engines give 64 MB, and four workers that each keep two batches of 256 images of
            224 x 224 in float32 need 1.2 GB.
        num_inodes: Files: a deck has some 60,000.
    """

    deck_bytes: int = 9 * _GB
    tmp_bytes: int = 1 * _GB
    cache_bytes: int = 1 * _GB
    shm_bytes: int = 1024 * _MIB
    num_inodes: int = 100_000
