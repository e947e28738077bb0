"""Forward, backward and optimizer recorded as one CUDA graph train as the same steps run one by one do."""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn

SKIPPED = 77
NUM_STEPS, NUM_WARMUP = 20, 3


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # Gradients are set to None so that backward writes them into memory of the graph.
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def adam(model: nn.Module) -> torch.optim.Optimizer:
    # capturable keeps Adam's step count on the GPU, where a replay can raise it.
    return torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)


def main() -> int:
    if not torch.cuda.is_available():
        print("needs an NVIDIA GPU: CUDA graphs are recorded on one")
        return SKIPPED
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).cuda()
    model = copy.deepcopy(eager)
    batches = [(torch.randn(32, 64, device="cuda"), torch.randn(32, 8, device="cuda")) for _ in range(NUM_STEPS)]
    optimizer = adam(eager)
    wanted = [step(eager, optimizer, x, y).item() for x, y in batches]

    optimizer = adam(model)
    held_x, held_y = (tensor.clone() for tensor in batches[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        # Libraries allocate on first use, which a recording forbids; these are the first real steps of the training.
        losses = []
        for x, y in batches[:NUM_WARMUP]:
            held_x.copy_(x)
            held_y.copy_(y)
            losses.append(step(model, optimizer, held_x, held_y).item())
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(model, optimizer, held_x, held_y)
    for x, y in batches[NUM_WARMUP:]:
        held_x.copy_(x)
        held_y.copy_(y)
        graph.replay()
        losses.append(loss.item())
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=1e-3, atol=1e-4)
    for got, want in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
    print(f"cuda: {NUM_STEPS - NUM_WARMUP} steps replayed from one graph, losses and parameters equal eager's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
