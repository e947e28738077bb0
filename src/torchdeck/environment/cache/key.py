"""Which builds may share compiled code: the name of a compile cache's folder.

Inductor and Triton check their own keys inside; this one keeps builds apart that would only grow each other's
cache, and lets a cache be measured, pruned or packed by the build it belongs to.
"""

from __future__ import annotations

import re
from pathlib import Path

from torchdeck import places


def cache_key(*, torch: str, variant: str, triton: str, python: str, gpu: str = "") -> str:
    """Return the folder name for one build on one kind of device.

    Args:
        torch: Version without its local part, such as ``2.6.0``.
        variant: ``cu124``, ``cpu``.
        triton: Version, or empty.
        python: Such as ``3.11``.
        gpu: Such as ``sm_90``; empty for the CPU.
    """
    parts = [f"torch{torch}", variant, f"triton{triton}" if triton else "", f"py{python}", gpu or "cpu"]
    return re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(part for part in parts if part))


def cache_folders(key: str) -> dict[str, Path]:
    """Return the environment variables of the compile caches with their folders."""
    base = places.cache_dir() / "compile" / key
    return {"TORCHINDUCTOR_CACHE_DIR": base / "inductor", "TRITON_CACHE_DIR": base / "triton"}
