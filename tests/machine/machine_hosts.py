"""Machines for the rules: one sound base, and changes to it. Recorded ones lie in tests/hosts as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import machine_parts
import msgspec

from torchdeck.machine.facts import (
    Compiler,
    Driver,
    Facts,
    Gpu,
    Nvidia,
    Place,
    PythonFacts,
    Storage,
    System,
    Toolchain,
)

HOSTS = Path(__file__).parent.parent / "hosts"
GB = 10**9


def place(path: str, **changes: Any) -> Place:
    values: dict[str, Any] = {
        "path": path, "exists": True, "writable": True, "free_bytes": 400 * GB, "total_bytes": 900 * GB,
        "num_free_inodes": 10_000_000, "filesystem": "ext4", "noexec": False,
    }  # fmt: skip
    return Place(**{**values, **changes})


def h100() -> Facts:
    """A sound machine: one H100 under a driver that has everything for CUDA 12.4."""
    return Facts(
        torchdeck="0.1.0",
        gathered_at="2026-12-01T12:00:00+00:00",
        system=System(os="linux", arch="x86_64", kernel="6.1.0", distribution="debian", pretty_name="Debian 12",
                      glibc="2.36", container="", wsl=False),
        nvidia=Nvidia(
            driver=Driver(version="550.54.15", cuda="12.4", source="NVML"),
            gpus=(Gpu(index=0, name="NVIDIA H100 80GB HBM3", cc=(9, 0), memory_bytes=85_520_809_984),),
            num_pci=1, devices=("/dev/nvidia0", "/dev/nvidiactl"), library=True,
        ),
        python=PythonFacts(path="/usr/bin/python3.11", version="3.11.2", implementation="cpython",
                           headers="/usr/include/python3.11/Python.h", torch=None),
        toolchain=Toolchain(c=Compiler(path="/usr/bin/gcc", version="gcc 12.2.0"),
                            cxx=Compiler(path="/usr/bin/g++", version="g++ 12.2.0"), nvcc=None, ptxas=None,
                            libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1", libcuda_for_linking=True),
        storage=Storage(home=place("~"), home_set=True, tmp=place("/tmp"), shm=place("/dev/shm", filesystem="tmpfs"),
                        data=place("~/.local/share/torchdeck"), cache=place("~/.cache/torchdeck")),
        variables={},
        host=machine_parts.host(), network=machine_parts.network(), surroundings=machine_parts.surroundings(),
        engines=machine_parts.engines(), caches=machine_parts.caches(),
    )  # fmt: skip


def changed(facts: Any, path: str, value: Any) -> Any:
    """Return facts with one value changed, named by its path: ``storage.shm.free_bytes``."""
    name, _, rest = path.partition(".")
    new = changed(getattr(facts, name), rest, value) if rest else value
    return msgspec.structs.replace(facts, **{name: new})
