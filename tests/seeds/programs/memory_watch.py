"""Memory looked at every N steps stays level in a healthy loop and shows a loop that keeps its activations."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NUM_STEPS, WATCH_EVERY = 300, 100
_MIB = 2**20


def used_bytes() -> int:
    """Return what tensors hold on the GPU, or what the process holds in memory on a CPU."""
    if DEVICE == "cuda":
        return torch.cuda.memory_allocated()
    # torch counts no CPU memory (memory_allocated() is 0 there); the second figure is the resident set in pages.
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def loop(*, keep: bool) -> tuple[list[int], int]:
    """Train for 300 steps; return the watched figures and how many bytes the loop kept."""
    model = nn.Sequential(nn.Linear(16, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 16, device=DEVICE)
    watched, kept = [], []
    for step in range(NUM_STEPS + 1):
        hidden = model[1](model[0](x))
        loss = model[2](hidden).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep:
            kept.append(hidden.detach())
        if step % WATCH_EVERY == 0:
            watched.append(used_bytes())
            print(f"step {step}: {watched[-1] / 1e9:.3f} GB")
    return watched, sum(tensor.nbytes for tensor in kept)


def main() -> None:
    torch.manual_seed(0)
    loop(keep=False)
    healthy, _ = loop(keep=False)
    leaking, kept_bytes = loop(keep=True)
    growth, leak = healthy[-1] - healthy[0], leaking[-1] - leaking[0]
    assert kept_bytes > 70 * _MIB
    assert growth < 20 * _MIB, f"a healthy loop grew by {growth / _MIB:.0f} MiB"
    assert leak > 0.8 * kept_bytes, f"the loop kept {kept_bytes / _MIB:.0f} MiB, the watch saw {leak / _MIB:.0f}"
    assert leaking == sorted(leaking)
    if DEVICE == "cuda":
        assert "Allocated memory" in torch.cuda.memory_summary()
        reserved_bytes = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() < reserved_bytes
    print(f"{DEVICE}: healthy loop {growth / _MIB:+.1f} MiB, leaking loop {leak / _MIB:+.1f} MiB")


if __name__ == "__main__":
    main()
