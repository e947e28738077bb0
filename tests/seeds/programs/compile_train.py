"""One line compiles a model: its gradients equal eager's, and 100 steps of Adam lower a real loss."""

from __future__ import annotations

import copy

import torch
import torch._inductor.config
from torch import nn
from torch._dynamo.utils import counters


class SimpleModel(nn.Module):
    """One linear layer from 784 pixels to 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(784, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # A sum of logits has no lower bound: it would fall for ever without anything being learnt.
    return nn.functional.cross_entropy(model(x), y)


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, num_steps: int = 100) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    # torch tries each vector unit by a compile and an import of itself: `torchdeck verify` does that, not this.
    torch._inductor.config.cpp.vec_isa_ok = False
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, 784, device=device)
    y = torch.randint(10, (64,), device=device)
    model = SimpleModel().to(device)
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend="inductor")

    # The optimizer may be given either: compiling wraps the model and copies no parameter.
    assert all(a is b for a, b in zip(compiled.parameters(), model.parameters(), strict=True))
    loss_of(compiled, x, y).backward()
    loss_of(eager, x, y).backward()
    for got, want in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad)
    num_made = sum(counters["inductor"][f"fxgraph_cache_{what}"] for what in ("hit", "miss", "bypass"))
    assert counters["stats"]["unique_graphs"] > 0, "nothing was captured"
    assert num_made > 0, "Inductor made no code"

    losses, wanted = train(compiled, x, y), train(eager, x, y)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=1e-3, atol=1e-4)
    assert losses[-1] < losses[0] / 2, losses
    print(f"{device}: {num_made} graphs compiled, gradients equal eager's")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps, eager {wanted[-1]:.3f}")


if __name__ == "__main__":
    main()
