"""The compilers, found as torch and Triton look for them."""

from __future__ import annotations

import os
import shutil

from torchdeck import runner
from torchdeck.machine.facts import Compiler, Missing, Toolchain


def gather_toolchain() -> Toolchain:
    """Return the C and the C++ compiler that ``torch.compile`` would call."""
    return Toolchain(
        c=_find(os.environ.get("CC"), "gcc", "clang", "cc"), cxx=_find(os.environ.get("CXX"), "g++", "clang++", "c++")
    )


def _find(*names: str | None) -> Compiler | None:
    for name in names:
        path = shutil.which(name) if name else None
        if path:
            done = runner.run([path, "--version"], timeout_s=3.0)
            line = (done.stdout.strip().splitlines() or [""])[0]
            version = line if done.ok and line else Missing(reason=f"--version ended with {done.rc}")
            return Compiler(path=path, version=version)
    return None
