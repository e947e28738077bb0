"""A sharded and compiled model in two processes trains as one process does, each process holding half of it.

On GPUs this is FSDP2 (``fully_shard``). torch 2.6.0's FSDP2 does not run on a CPU, so there the first FSDP stands in.
"""

from __future__ import annotations

import copy
import os
import sys

import torch
import torch._inductor.config
import torch.distributed as dist
from torch import nn
from torch._dynamo.utils import counters
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

NUM_PROCESSES = 2
ON_GPU = torch.cuda.device_count() >= NUM_PROCESSES


def shard(model: nn.Sequential) -> nn.Module:
    """Compile each block, and shard each block and the whole."""
    if not ON_GPU:
        # Named outright: left to itself, FSDP wants an accelerator.
        cpu = torch.device("cpu")
        for index, one in enumerate(model):
            model[index] = FullyShardedDataParallel(torch.compile(one), use_orig_params=True, device_id=cpu)
        return FullyShardedDataParallel(model, use_orig_params=True, device_id=cpu)
    for one in model:
        one.compile()
        fully_shard(one)
    fully_shard(model)
    return model


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, num_steps: int = 5) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def main() -> None:
    # torch tries each vector unit by a compile and an import of itself: seconds that show nothing here.
    torch._inductor.config.cpp.vec_isa_ok = False
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if ON_GPU else torch.device("cpu")
    if ON_GPU:
        torch.cuda.set_device(device)
    dist.init_process_group(backend="nccl" if ON_GPU else "gloo")
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(2))).to(device)
    x, y = torch.randn(16, 32, device=device), torch.randn(16, 32, device=device)
    num_elements = sum(parameter.numel() for parameter in model.parameters())
    wanted = torch.stack(train(copy.deepcopy(model), x, y))

    sharded = shard(model)
    mine = slice(dist.get_rank(), None, NUM_PROCESSES)
    losses = torch.stack(train(sharded, x[mine], y[mine]))
    dist.all_reduce(losses)
    torch.testing.assert_close(losses / NUM_PROCESSES, wanted, rtol=1e-4, atol=1e-5)
    num_held = sum(
        (parameter.to_local() if hasattr(parameter, "to_local") else parameter).numel()
        for parameter in sharded.parameters()
    )
    assert num_held <= 0.6 * num_elements, f"this process holds {num_held} of {num_elements} elements"
    num_made = sum(counters["inductor"][f"fxgraph_cache_{what}"] for what in ("hit", "miss", "bypass"))
    assert num_made > 0, "nothing was compiled"
    if dist.get_rank() == 0:
        kind = "FSDP2" if ON_GPU else "FSDP"
        print(f"{kind} on {dist.get_backend()}, compiled: 5 losses equal one process's")
        print(f"each process holds about {num_held} of {num_elements} elements")
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" not in os.environ:
        # Both processes are here: the loopback interface needs no host name and no open firewall.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        launcher = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
        os.execv(sys.executable, [sys.executable, *launcher, "--nproc-per-node", str(NUM_PROCESSES), __file__])
    main()
