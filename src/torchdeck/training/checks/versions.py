"""Whether torch can be imported at all, what it is made of, and which devices it can reach."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

from .outcome import Wrong

_GIB = 2**30


def cases_import() -> list[tuple[str, Callable[[], str]]]:
    """Name the one case: torch itself. Its time is the time of the import."""
    return [("", _import)]


def _import() -> str:
    import torch

    found = versions()
    parts = [f"torch {found['torch']}", f"CUDA {found['cuda']}" if found["cuda"] else "no CUDA in this build"]
    if getattr(torch.version, "hip", None):
        parts.append(f"HIP {torch.version.hip}")
    named = (("cuDNN", "cudnn"), ("NCCL", "nccl"), ("Triton", "triton"))
    return ", ".join([*parts, *(f"{name} {found[key]}" for name, key in named if found[key])])


def versions() -> dict[str, str | None]:
    """Return what torch is made of; None for what it does not have.

    torch, CUDA, cuDNN and NCCL say it themselves. Triton is not imported for it: its version is the one that is
    installed, and whether it works is what ``compile`` shows.

    Raises:
        Wrong: A library that this torch was built with is not there.
    """
    import torch

    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda or None,
        "cudnn": _cudnn_version(torch),
        "nccl": _nccl_version(torch),
        "triton": _triton_version(),
        "python": platform.python_version(),
    }


def _triton_version() -> str | None:
    # Nightly builds of torch bring it under the second name.
    for distribution in ("triton", "pytorch-triton"):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _cudnn_version(torch: Any) -> str | None:
    """Return the version of the cuDNN that is loaded, read from the library itself."""
    if not torch.version.cuda:
        return None
    number = torch.backends.cudnn.version()
    if number is None:
        raise Wrong(f"torch was built with CUDA {torch.version.cuda}, but its cuDNN is not there")
    # 90100 is 9.1.0; until cuDNN 8 it was 8902 for 8.9.2.
    major, rest = divmod(number, 10000) if number >= 90000 else divmod(number, 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _nccl_version(torch: Any) -> str | None:
    if not torch.version.cuda or not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        return None
    return ".".join(map(str, torch.cuda.nccl.version()))


def cases_devices(*, need_cuda: bool) -> list[tuple[str, Callable[[], str]]]:
    """Name the CPU and each CUDA device; without any of these, ``cuda`` says why, and fails if one is needed."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    cuda: list[tuple[str, Callable[[], str]]] = [
        (f"cuda:{index}", partial(_cuda, index, count)) for index in range(count)
    ]
    return [("cpu", _cpu), *(cuda or [("cuda", partial(_no_cuda, need_cuda))])]


def _cpu() -> str:
    import torch

    _add_one("cpu")
    level = getattr(torch.backends.cpu, "get_cpu_capability", lambda: "unknown")()
    return f"{torch.get_num_threads()} threads of {os.cpu_count()} processors, kernels for {level}"


def _add_one(device: str) -> None:
    """Allocate, run one kernel, copy back: what finds a device that is listed but unusable."""
    import torch

    counted = torch.arange(256.0, device=device).add_(1).cpu().tolist()
    if counted != [float(number) for number in range(1, 257)]:
        raise Wrong(f"0 … 255, each plus 1, came back from {device} as {counted[:3]} … {counted[-1]}")


def _cuda(index: int, count: int) -> str:
    """Describe a device after its first use."""
    import torch

    _add_one(f"cuda:{index}")
    gpu = torch.cuda.get_device_properties(index)
    current = ", the current one" if index == torch.cuda.current_device() else ""
    return f"{gpu.name}, sm_{gpu.major}{gpu.minor}, {gpu.total_memory / _GIB:.1f} GiB, {index + 1} of {count}{current}"


def _no_cuda(need_cuda: bool) -> str:
    """Say why there is no CUDA device, in the driver's words where it has any."""
    import torch

    from .outcome import Skip, first_error_line

    reason = "this build of torch has no CUDA"
    if torch.version.cuda:
        reason = "no CUDA device is visible"
        try:
            torch.cuda.init()
        except Exception as error:
            reason = first_error_line(error)
        # The driver's words are the same for a hidden GPU and a missing one.
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        if hidden is not None:
            reason = f'CUDA_VISIBLE_DEVICES is set to "{hidden}"; {reason}'
    if need_cuda:
        raise Wrong(f"a CUDA device is needed: {reason}")
    raise Skip(reason)
