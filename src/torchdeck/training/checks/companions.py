"""torchvision and torchaudio: they load with this torch, and one operator of each gives a known answer."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial

import torch

from .numeric import devices
from .outcome import Skip, Wrong


def _wanted(package: str) -> None:
    """Skip when the package is not installed; one that is installed and broken fails later, at its import."""
    if importlib.util.find_spec(package) is None:
        raise Skip("not installed")


def cases_torchvision() -> list[tuple[str, Callable[[], str]]]:
    """Name a box filter on each device.

    Raises:
        Skip: torchvision is not installed.
    """
    _wanted("torchvision")
    return [(device, partial(_nms, device)) for device in devices()]


def _nms(device: str) -> str:
    """Keep the best of overlapping boxes.

    Boxes 0 and 1 share 81 of 119 (0.68) and 2 and 3 share 25 of 175 (0.14), so at 0.5 only box 1 goes. By falling
    score the rest is 3, 0, 2.
    """
    torchvision = importlib.import_module("torchvision")
    boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [25, 25, 35, 35]], dtype=torch.float32)
    scores = torch.tensor([0.8, 0.7, 0.6, 0.9])
    kept = torchvision.ops.nms(boxes.to(device), scores.to(device), 0.5).tolist()
    if kept != [3, 0, 2]:
        raise Wrong(f"torchvision {torchvision.__version__}: nms kept boxes {kept}, not [3, 0, 2]")
    return f"torchvision {torchvision.__version__}, nms right"


def cases_torchaudio() -> list[tuple[str, Callable[[], str]]]:
    """Name a recursive filter on the CPU.

    Raises:
        Skip: torchaudio is not installed.
    """
    _wanted("torchaudio")
    return [("cpu", _lfilter)]


def _lfilter() -> str:
    """Send one impulse through y[t] = x[t] + y[t-1]/2, whose answer is 1, 1/2, 1/4, … exactly."""
    torchaudio = importlib.import_module("torchaudio")
    functional = importlib.import_module("torchaudio.functional")
    impulse = torch.zeros(1, 16)
    impulse[0, 0] = 1
    heard = functional.lfilter(impulse, torch.tensor([1.0, -0.5]), torch.tensor([1.0, 0.0]), clamp=False)
    if not torch.equal(heard[0], 0.5 ** torch.arange(16.0)):
        raise Wrong(
            f"torchaudio {torchaudio.__version__}: lfilter gave {heard[0, :4].tolist()}, not [1, 0.5, 0.25, 0.125]"
        )
    # Without its compiled part torchaudio computes the same in Python: right, but that must be seen.
    compiled = getattr(importlib.import_module("torchaudio._extension"), "_IS_TORCHAUDIO_EXT_AVAILABLE", True)
    return f"torchaudio {torchaudio.__version__}, lfilter right{'' if compiled else ' (without its compiled part)'}"
