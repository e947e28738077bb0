"""Collectives in one process, through the library that several would use: it loads, starts and moves data.

One process cannot show that two reach each other, and a sum over it is the value itself; ``torchdeck run`` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import torch

from .outcome import Skip, Wrong

_TIME_LIMIT = timedelta(seconds=60)


def cases_gloo() -> list[tuple[str, Callable[[], str]]]:
    """Name the one case of gloo, the CPU's collectives.

    Raises:
        Skip: This torch has no gloo.
    """
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        raise Skip("this build of torch has no gloo")
    return [("cpu", partial(_collectives, "gloo", "cpu"))]


def cases_nccl() -> list[tuple[str, Callable[[], str]]]:
    """Name every CUDA device for NCCL, the GPUs' collectives.

    Raises:
        Skip: There is no CUDA device, or this torch has no NCCL.
    """
    if not torch.cuda.is_available():
        raise Skip("NCCL needs a CUDA device")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        raise Skip("this build of torch has no NCCL")
    subjects = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [(device, partial(_collectives, "nccl", device)) for device in subjects]


def _collectives(backend: str, device: str) -> str:
    """Sum and gather 1 … 1024; the gathered copy stands in memory of its own, so that doing nothing is found."""
    dist = torch.distributed
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    # A store in memory: no port is opened and no host name is looked up for the meeting itself.
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, timeout=_TIME_LIMIT)
    try:
        values = torch.arange(1.0, 1025.0, device=device)
        gathered = torch.zeros_like(values)
        dist.all_reduce(values)
        dist.all_gather([gathered], values)
        came_back = {"all_reduce": values.cpu(), "all_gather": gathered.cpu()}
    finally:
        dist.destroy_process_group()
    for name, found in came_back.items():
        if not torch.equal(found, torch.arange(1.0, 1025.0)):
            raise Wrong(f"{name} of 1 … 1024 over one process came back with a sum of {float(found.sum()):,.1f}")
    return "all_reduce and all_gather over one process"
