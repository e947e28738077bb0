"""Gradient checkpointing gives the same gradients while fewer bytes are held between forward and backward."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def block(width: int) -> nn.Module:
    # Dropout too: the second forward must draw the same random numbers as the first.
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))


def gradients(blocks: nn.ModuleList, x: torch.Tensor, *, checkpointed: bool) -> tuple[list[torch.Tensor], int]:
    """Return the gradients, and the bytes that autograd saved beside the parameters."""
    saved: dict[int, int] = {}
    parameters = {parameter.data_ptr() for parameter in blocks.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    torch.manual_seed(1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        hidden = x
        for one in blocks:
            hidden = checkpoint(one, hidden, use_reentrant=False) if checkpointed else one(hidden)
        loss = hidden.square().mean()
    return list(torch.autograd.grad(loss, list(blocks.parameters()))), sum(saved.values())


def main() -> None:
    torch.manual_seed(0)
    blocks = nn.ModuleList(block(128) for _ in range(6)).to(DEVICE)
    x = torch.randn(256, 128, device=DEVICE, requires_grad=True)
    plain, plain_bytes = gradients(blocks, x, checkpointed=False)
    again, checkpointed_bytes = gradients(blocks, x, checkpointed=True)
    for got, want in zip(again, plain, strict=True):
        torch.testing.assert_close(got, want)
    assert 0 < checkpointed_bytes < plain_bytes / 4, (checkpointed_bytes, plain_bytes)
    print(f"{DEVICE}: saved for backward {plain_bytes / 2**20:.1f} MiB, checkpointed {checkpointed_bytes / 2**20:.1f}")


if __name__ == "__main__":
    main()
