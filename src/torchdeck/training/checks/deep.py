"""What only ``doctor --deep`` asks: memory that processes share, copies to and from a GPU, several processes at once.

Each moves real data and compares it. The rates are for reading, not for judging: a slow machine is not a broken one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .outcome import Skip, Wrong

_BATCH_BYTES = 32 * 2**20
_NUM_BATCHES = 8
_COPY_BYTES = 256 * 2**20
_NUM_RANKS = 2
_RANKS_TIMEOUT_S = 120.0

# One process of several; the store is a file, so that no port is needed. Each rank sums and gathers what the others
# sent, and leaves with an error where a number is wrong.
_RANK = """
import sys, datetime, torch
import torch.distributed as dist
backend, rank, size, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
device = f"cuda:{rank}" if backend == "nccl" else "cpu"
if backend == "nccl":
    torch.cuda.set_device(device)
limit = datetime.timedelta(seconds=60)
dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size, timeout=limit)
values = torch.arange(1.0, 2**20 + 1, device=device) * (rank + 1)
gathered = [torch.zeros_like(values) for _ in range(size)]
dist.all_gather(gathered, values)
dist.all_reduce(values)
base = torch.arange(1.0, 2**20 + 1, device=device)
right = all(torch.equal(part, base * (number + 1)) for number, part in enumerate(gathered))
right = right and torch.equal(values, base * (size * (size + 1) // 2))
dist.destroy_process_group()
sys.exit(0 if right else 9)
"""


class _Numbered(torch.utils.data.Dataset):  # type: ignore[misc]
    """Batches whose every value says which one it is."""

    def __len__(self) -> int:
        return _NUM_BATCHES

    def __getitem__(self, number: int) -> Any:
        return torch.full((_BATCH_BYTES // 4,), float(number))


def cases_dataloader() -> list[tuple[str, Callable[[], str]]]:
    """Name the one case: batches from worker processes, through shared memory."""
    return [("2 workers", _dataloader)]


def _dataloader() -> str:
    loader = torch.utils.data.DataLoader(_Numbered(), batch_size=None, num_workers=2, prefetch_factor=2)
    started = time.monotonic()
    for number, batch in enumerate(loader):
        if batch.numel() != _BATCH_BYTES // 4 or not bool((batch == float(number)).all()):
            raise Wrong(f"batch {number} came back from its worker with other values")
    seconds = time.monotonic() - started
    total = _NUM_BATCHES * _BATCH_BYTES
    return f"{_NUM_BATCHES} batches of {_BATCH_BYTES >> 20} MiB through shared memory, {total / seconds / 1e9:.1f} GB/s"


def cases_copy() -> list[tuple[str, Callable[[], str]]]:
    """Name a copy to and from each GPU.

    Raises:
        Skip: There is no GPU.
    """
    if not torch.cuda.is_available():
        raise Skip("no CUDA device")
    return [(f"cuda:{index}", partial(_copy, f"cuda:{index}")) for index in range(torch.cuda.device_count())]


def _copy(device: str) -> str:
    source = torch.arange(_COPY_BYTES // 4, dtype=torch.int32).pin_memory()
    there, back = torch.empty_like(source, device=device), torch.empty_like(source).pin_memory()
    rates = []
    for target, origin in ((there, source), (back, there)):
        target.copy_(origin, non_blocking=True)  # the first copy maps the pages
        torch.cuda.synchronize(device)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.device(device):
            begin.record()
            target.copy_(origin, non_blocking=True)
            end.record()
        torch.cuda.synchronize(device)
        rates.append(_COPY_BYTES / (begin.elapsed_time(end) / 1000) / 1e9)
    if not torch.equal(source, back):
        raise Wrong(f"{_COPY_BYTES >> 20} MiB came back from {device} with other values")
    return f"pinned memory, {rates[0]:.1f} GB/s to the GPU, {rates[1]:.1f} GB/s back"


def cases_ranks() -> list[tuple[str, Callable[[], str]]]:
    """Name an exchange between processes: with gloo on the CPU, with NCCL between the GPUs where there are several."""
    cases: list[tuple[str, Callable[[], str]]] = [
        (f"gloo, {_NUM_RANKS} processes", partial(_ranks, "gloo", _NUM_RANKS))
    ]
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if num_gpus > 1 and torch.distributed.is_nccl_available():
        cases.append((f"nccl, {num_gpus} GPUs", partial(_ranks, "nccl", num_gpus)))
    return cases


def _ranks(backend: str, size: int) -> str:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torchdeck-ranks-") as folder:
        store, errors = Path(folder) / "store", Path(folder) / "errors"
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with errors.open("w+b") as log:
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-I", "-c", _RANK, backend, str(rank), str(size), str(store)],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                )
                for rank in range(size)
            ]
            codes = _wait(ranks)
        said = errors.read_bytes().decode("utf-8", "replace").strip().splitlines()
    if any(code == 9 for code in codes):
        raise Wrong(f"{backend}: the sum over {size} processes came back wrong")
    if any(codes):
        last = said[-1] if said else "no word"
        raise Wrong(f"{backend}: processes ended with {codes}: {last}")
    return f"sum and gather of 4 MiB over {size} processes, {time.monotonic() - started:.1f} s"


def _wait(ranks: list[subprocess.Popen[bytes]]) -> list[int]:
    """Wait for all, and end those that are left at the time limit, or when one has failed."""
    deadline = time.monotonic() + _RANKS_TIMEOUT_S
    while time.monotonic() < deadline:
        codes = [rank.poll() for rank in ranks]
        if all(code is not None for code in codes) or any(codes):
            break
        time.sleep(0.05)
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
    return [rank.wait() for rank in ranks]
