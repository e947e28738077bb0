"""Automatic precision: products run in 16 bits, results stay near float32's, and less is held for backward."""

from __future__ import annotations

import copy

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# float16 only where a GPU lacks bfloat16: its small range needs the gradients scaled.
DTYPE = torch.bfloat16 if DEVICE == "cpu" or torch.cuda.is_bf16_supported() else torch.float16
# bfloat16 keeps 8 bits: one rounding is 2^-9, and a few add up over the layers.
TOLERANCE = 0.03


def run(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, autocast: bool) -> tuple[list[float], list, int, set]:
    """Train for 20 steps; return losses, the first gradients, the bytes saved for backward, the output's dtypes."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(DEVICE, enabled=autocast and DTYPE is torch.float16)
    losses, first, dtypes = [], [], set()
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    for _ in range(20):
        saved.clear()
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with torch.autocast(DEVICE, dtype=DTYPE, enabled=autocast), hooks:
            output = model(x)
            loss = nn.functional.mse_loss(output, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        first = first or [parameter.grad.clone() for parameter in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
        dtypes.add(output.dtype)
    return losses, first, sum(saved.values()), dtypes


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8)).to(DEVICE)
    x = torch.randn(2048, 64, device=DEVICE)
    # Something that can be learnt: the gradients of noise nearly cancel, and rounding would be most of what is left.
    y = x @ torch.randn(64, 8, device=DEVICE) / 8
    wanted, wanted_grads, wanted_bytes, wanted_dtypes = run(copy.deepcopy(model), x, y, autocast=False)
    losses, grads, saved_bytes, dtypes = run(model, x, y, autocast=True)
    assert wanted_dtypes == {torch.float32}
    assert dtypes == {DTYPE}, dtypes
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    assert losses[-1] < losses[0]
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=TOLERANCE, atol=0)
    for got, want in zip(grads, wanted_grads, strict=True):
        assert (got - want).norm() <= TOLERANCE * want.norm(), (got - want).norm() / want.norm()
    assert saved_bytes < 0.8 * wanted_bytes, (saved_bytes, wanted_bytes)
    print(f"{DEVICE} {DTYPE}: loss {losses[-1]:.4f}, float32 {wanted[-1]:.4f}")
    print(f"saved for backward {saved_bytes / 2**20:.2f} MiB, float32 {wanted_bytes / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
