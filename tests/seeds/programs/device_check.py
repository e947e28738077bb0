"""The device check says what is there, with a GPU and without one."""

from __future__ import annotations

import os
import subprocess
import sys

import torch


def check() -> tuple[bool, int, int | None]:
    """Return whether CUDA can be used, how many devices it has, and the current one, or None without any."""
    available, count = torch.cuda.is_available(), torch.cuda.device_count()
    # current_device() starts CUDA, which raises where there is none.
    return available, count, torch.cuda.current_device() if available else None


def main() -> None:
    available, count, current = check()
    print(f"CUDA available: {available}, devices: {count}, current: {'none' if current is None else current}")
    assert available == (count > 0) == (current is not None)
    if available:
        assert 0 <= current < count
        assert torch.zeros(1, device="cuda").device.index == current
        # The same on a machine without a GPU, as far as this process can tell.
        subprocess.run([sys.executable, __file__], env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, check=True)


if __name__ == "__main__":
    main()
