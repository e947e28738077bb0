"""DDP in two processes trains as one process does on the whole batch, plain and compiled."""

from __future__ import annotations

import copy
import os
import sys

import torch
import torch._inductor.config
import torch.distributed as dist
from torch import nn
from torch._dynamo.utils import counters
from torch.nn.parallel import DistributedDataParallel

NUM_PROCESSES = 2
# NCCL takes one process a GPU; with fewer GPUs than processes all of them compute on the CPU.
ON_GPU = torch.cuda.device_count() >= NUM_PROCESSES


class Net(nn.Module):
    """Two layers, in a class of its own: compiling a DDP around a bare nn.Sequential makes no code in torch 2.6.0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(20, 32), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(nn.functional.gelu(self.inner(x)))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, num_steps: int = 5) -> list[torch.Tensor]:
    """Return the gradients of the first step; the parameters are left trained."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first: list[torch.Tensor] = []
    for _ in range(num_steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        first = first or [parameter.grad.clone() for parameter in model.parameters()]
        optimizer.step()
    return first


def main() -> None:
    # torch tries each vector unit by a compile and an import of itself: seconds that show nothing here.
    torch._inductor.config.cpp.vec_isa_ok = False
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if ON_GPU else torch.device("cpu")
    if ON_GPU:
        torch.cuda.set_device(device)
    dist.init_process_group(backend="nccl" if ON_GPU else "gloo")
    assert dist.get_world_size() == NUM_PROCESSES
    torch.manual_seed(0)
    model = Net().to(device)
    x, y = torch.randn(16, 20, device=device), torch.randn(16, 4, device=device)
    alone = copy.deepcopy(model)
    wanted = train(alone, x, y)
    mine = slice(dist.get_rank(), None, NUM_PROCESSES)
    for compiled in (False, True):
        together = DistributedDataParallel(copy.deepcopy(model), device_ids=[local_rank] if ON_GPU else None)
        step_model = torch.compile(together) if compiled else together
        for got, want in zip(train(step_model, x[mine], y[mine]), wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        for got, want in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    num_made = sum(counters["inductor"][f"fxgraph_cache_{what}"] for what in ("hit", "miss", "bypass"))
    assert num_made > 0, "nothing was compiled"
    if dist.get_rank() == 0:
        print(f"{dist.get_backend()}, {NUM_PROCESSES} processes: gradients and 5 steps equal one process, compiled too")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" not in os.environ:
        # Both processes are here: the loopback interface needs no host name and no open firewall.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        launcher = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
        os.execv(sys.executable, [sys.executable, *launcher, "--nproc-per-node", str(NUM_PROCESSES), __file__])
    main()
