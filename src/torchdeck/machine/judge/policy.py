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
        docker_bytes: Space where an engine keeps its images: one with torch 2.6.0+cu124 is some 8 GB unpacked, and
            its packed layers lie beside it while it is pulled.
        ram_bytes: Memory at all: importing torch, building a model and two workers take 2 GiB.
        ram_left_bytes: Memory still to be had: below this the next batch of a worker is killed.
        num_files: Open files: no distribution gives less than 1024, and every tensor that workers share takes one.
        num_processes: Processes and threads of a user: 64 cores and 8 workers start some 200 threads, a notebook
            server and an editor's server as many again.
        num_processes_left: Processes and threads still to be had in the control group: one trainer with 8 workers.
        memlock_bytes: Memory that may be locked: NCCL registers all buffers of every peer, some 100 MB each.
        torch_for_numpy_2: The first torch whose wheels were compiled for NumPy 2 (release notes of 2.3).
        mkl_without_symbol: The first MKL without iJIT_NotifyEvent (pytorch#123097).
        gpu_memory_held_frac: Memory of a GPU that is taken before the job starts: a driver and a desktop take up to a
            tenth of a small card, a forgotten notebook kernel with a model in it more than this.
    """

    deck_bytes: int = 9 * _GB
    tmp_bytes: int = 1 * _GB
    cache_bytes: int = 1 * _GB
    shm_bytes: int = 1024 * _MIB
    num_inodes: int = 100_000
    docker_bytes: int = 10 * _GB
    ram_bytes: int = 2048 * _MIB
    ram_left_bytes: int = 512 * _MIB
    num_files: int = 1024
    num_processes: int = 512
    num_processes_left: int = 128
    memlock_bytes: int = 1024 * _MIB
    torch_for_numpy_2: tuple[int, int] = (2, 3)
    mkl_without_symbol: tuple[int, int] = (2024, 1)
    gpu_memory_held_frac: float = 0.25
