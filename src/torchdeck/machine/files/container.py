"""Rules that compose files and devcontainers share: the GPU request, shared memory, and when torch is meant."""

from __future__ import annotations

import re

from torchdeck.machine.files.hit import Hit, hit

# Engines give 64 MB. A gibibyte holds the batches of a few workers; below it they die (the reason stands in
# machine.judge.policy: four workers with two batches of 256 images need 1.2 GB).
_ENOUGH_SHM_BYTES = 2**30
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TORCH_COMMAND = re.compile(r"\b(torchrun|torch\.distributed|accelerate launch|deepspeed|\w*train\w*\.py)\b")
_GPU_COMMAND = re.compile(r"\b(nvidia-smi|torchrun|deepspeed)\b|--device[= ]cuda|\bcuda:\d\b")


def trains(command: str) -> bool:
    """Whether a command trains with torch, by its words."""
    return bool(_TORCH_COMMAND.search(command))


def computes(command: str) -> bool:
    """Whether a command is for a GPU, by its words."""
    return bool(_GPU_COMMAND.search(command))


def size_bytes(text: str) -> int | None:
    """Return a size such as ``64m`` or ``8gb`` in bytes; None if it is none."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([bkmgt]?)(?:i?b)?", text.strip().lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


def small_shm(line: int, size: str, mend: tuple[str, ...]) -> list[Hit]:
    """Judge the size of shared memory, empty for the engine's own."""
    given = size_bytes(size) if size else 64 * 2**20
    if given is None or given >= _ENOUGH_SHM_BYTES:
        return []
    return [
        hit(
            line,
            "shm-too-small",
            "warning",
            f"shared memory is {size or '64 MB, what engines give'}",
            cause="Workers of a DataLoader and NCCL pass tensors through /dev/shm; a full one ends in a bus error.",
            needs="1 GiB and more, or the host's own",
            mend=mend,
        )
    ]


def no_gpu(line: int, title: str, evidence: str, mend: tuple[str, ...]) -> Hit:
    """Return the finding that a container for GPUs asks for none."""
    return hit(
        line,
        "gpu-not-passed-to-container",
        "warning",
        title,
        cause="Without a request the engine passes neither device nor driver: torch computes on the CPU.",
        evidence=evidence,
        needs="a GPU request",
        mend=mend,
    )
