"""torchdeck: a verified PyTorch + CUDA environment, fast by measurement, with errors explained.

The public names are loaded on first use, so that importing this package costs
nothing: the command line must answer in 80 ms and never pay for torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "gather": "torchdeck.machine.probes",
    "judge": "torchdeck.machine.judge",
    "resolve_stack": "torchdeck.machine.stack",
    "line_chart": "torchdeck.render.svg",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604 - every key is a string


def __getattr__(name: str) -> Any:
    """Load a public name from the room that owns it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'torchdeck' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *_PUBLIC})
