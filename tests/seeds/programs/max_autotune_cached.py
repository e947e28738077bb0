"""A max-autotune compile fills a cache on disk, and a second process is served from it with the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
import torch._inductor.config
from torch import nn
from torch._dynamo.utils import counters


def child() -> None:
    """Compile and run one training step, and print what the cache did as JSON."""
    torch.manual_seed(0)
    # torch tries each vector unit by a compile and an import of itself: seconds that show nothing here.
    torch._inductor.config.cpp.vec_isa_ok = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 64)).to(device)
    x = torch.randn(128, 256, device=device)
    started = time.monotonic()
    loss = torch.compile(model, mode="max-autotune")(x).square().mean()
    loss.backward()
    found = {
        "device": device,
        "first_step_s": time.monotonic() - started,
        "hits": counters["inductor"]["fxgraph_cache_hit"],
        "misses": counters["inductor"]["fxgraph_cache_miss"],
        "bypasses": counters["inductor"]["fxgraph_cache_bypass"],
        "loss": loss.item(),
        "gradient": model[0].weight.grad.double().norm().item(),
    }
    print(json.dumps(found))


def run_child(cache: str) -> dict[str, Any]:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, __file__, "child"], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first, second = run_child(cache), run_child(cache)
    assert first["misses"] > 0, first
    assert first["hits"] == 0, first
    assert second["hits"] > 0, second
    assert second["misses"] == second["bypasses"] == 0, second
    assert abs(second["loss"] - first["loss"]) <= 1e-5 * abs(first["loss"]), (first, second)
    assert abs(second["gradient"] - first["gradient"]) <= 1e-4 * abs(first["gradient"]), (first, second)
    print(f"{first['device']}: first process {first['misses']} graphs compiled, second {second['hits']} from the cache")
    print(f"first step {first['first_step_s']:.1f} s, then {second['first_step_s']:.1f} s")


if __name__ == "__main__":
    child() if sys.argv[1:] == ["child"] else main()
