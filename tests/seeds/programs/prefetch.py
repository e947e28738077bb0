"""The next batch is fetched while this one is used, and all arrive unchanged and in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NUM_BATCHES = 20


def prefetch_on_stream(batches: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Copy each batch to the GPU on a side stream while the one before is computed on."""
    side = torch.cuda.Stream()
    source = iter(batches)

    def fetch() -> torch.Tensor | None:
        batch = next(source, None)
        if batch is None:
            return None
        with torch.cuda.stream(side):
            # Only a copy from pinned memory is asynchronous.
            return batch.pin_memory().to("cuda", non_blocking=True)

    upcoming = fetch()
    while upcoming is not None:
        batch = upcoming
        # Without these two, computing may start before the copy ends, and the memory may be reused too early.
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        upcoming = fetch()
        yield batch


def prefetch_in_thread(batches: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Fetch one batch ahead in a thread: a CPU has no copy to hide, only the loading itself."""
    ready: queue.Queue[torch.Tensor | None] = queue.Queue(maxsize=1)

    def load() -> None:
        for batch in batches:
            ready.put(batch)
        ready.put(None)

    threading.Thread(target=load, daemon=True).start()
    while (batch := ready.get()) is not None:
        yield batch


def main() -> None:
    torch.manual_seed(0)
    wanted = [torch.randn(64, 1024) for _ in range(NUM_BATCHES)]
    fetched = [threading.Event() for _ in range(NUM_BATCHES)]
    weight = torch.randn(1024, 1024, device=DEVICE)

    def source() -> Iterator[torch.Tensor]:
        for index, batch in enumerate(wanted):
            fetched[index].set()
            yield batch

    prefetch = prefetch_on_stream if DEVICE == "cuda" else prefetch_in_thread
    copies, results = [], []
    for index, batch in enumerate(prefetch(source())):
        assert batch.device.type == DEVICE
        if index + 1 < NUM_BATCHES:
            assert fetched[index + 1].wait(timeout=10), f"batch {index + 1} was not asked for while {index} was in use"
        results.append(batch @ weight)
        copies.append(batch.clone())
        # Enough work that the next copy ends while this still runs.
        for _ in range(10):
            weight.mul(1.0)
    assert len(copies) == NUM_BATCHES
    for got, result, want in zip(copies, results, wanted, strict=True):
        assert torch.equal(got.cpu(), want)
        torch.testing.assert_close(result, want.to(DEVICE) @ weight)
    print(f"{DEVICE}: {NUM_BATCHES} batches unchanged and in order, each fetched before the one before was done with")


if __name__ == "__main__":
    main()
