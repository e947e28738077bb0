"""The compilers that ``torch.compile`` calls."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Compiler(Fact, frozen=True, kw_only=True):
    """A compiler.

    Args:
        path: Its executable.
        version: The first line that it says of itself.
    """

    path: str
    version: str | Missing


class Toolchain(Fact, frozen=True, kw_only=True):
    """The compilers that are found as torch and Triton look for them; None where there is none.

    Args:
        c: For Triton's launchers: the variable CC, then gcc, clang, cc.
        cxx: For Inductor's CPU code: the variable CXX, then g++, clang++, c++.
    """

    c: Compiler | None
    cxx: Compiler | None
