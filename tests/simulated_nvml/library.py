"""Builds the simulated NVML with the machine's C compiler, and writes its scenarios."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")

# What every GPU of a scenario has unless the scenario says otherwise.
H100 = {
    "name": "NVIDIA H100 80GB HBM3", "cc": "9 0", "memory": "81559 551", "persistence": "1", "compute_mode": "0",
    "mig": "0 0", "ecc": "1", "ecc_volatile": "0", "ecc_aggregate": "0", "rows": "0 0 0 0", "clock": "1980",
    "clock_max": "1980", "reasons": "1", "temperature": "31", "power": "70312", "power_limit": "700000", "gen": "5",
    "gen_max": "5", "width": "16", "width_max": "16", "fabric": "3 0 0", "nvlinks": "18",
}  # fmt: skip
# A card without error correction, splitting, fabric or links.
GEFORCE = {
    "name": "NVIDIA GeForce RTX 4090", "cc": "8 9", "memory": "24564 300", "persistence": "0", "compute_mode": "0",
    "clock": "210", "clock_max": "3105", "reasons": "1", "temperature": "40", "power": "20000",
    "power_limit": "450000", "gen": "1", "gen_max": "4", "width": "16", "width_max": "16",
}  # fmt: skip


def compiler() -> str | None:
    """Return a C compiler, None if there is none."""
    return shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")


@functools.lru_cache(maxsize=2)
def build(*, old_driver: bool = False) -> Path:
    """Compile the library and return its folder, for LD_LIBRARY_PATH; an old driver lacks the newer functions."""
    folder = Path(tempfile.mkdtemp(prefix="simulated-nvml-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    gcc = compiler()
    assert gcc is not None
    file = folder / "libnvidia-ml.so.550.54.15"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror", "-O1"]
    subprocess.run(
        [gcc, *flags, *(["-DOLD_DRIVER"] if old_driver else []), "-o", str(file), str(SOURCE)], check=True, timeout=120
    )
    (folder / "libnvidia-ml.so.1").symlink_to(file.name)
    return folder


def scenario(num_gpus: int = 8, gpu: dict[str, str] | None = None, **lines: str) -> str:
    """Return a scenario: so many like GPUs; ``gpu3="reasons 0x40"`` changes one, ``init="error 9"`` the machine."""
    rows = ["driver 550.54.15", "cuda 12040", f"gpus {num_gpus}"]
    rows += [f"set * {key} {value}" for key, value in (H100 if gpu is None else gpu).items()]
    for name, value in lines.items():
        number = name.removeprefix("gpu")
        rows += [f"set {number} {part}" for part in value.split("; ")] if number.isdigit() else [f"{name} {value}"]
    return "\n".join(rows) + "\n"
