"""The compilers that ``torch.compile`` and builds of extensions call, and the driver's library that Triton links."""

from __future__ import annotations

import re

from torchdeck.machine.facts.missing import Fact, Missing
from torchdeck.machine.facts.nvidia import NOT_GATHERED

_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_DOTTED = re.compile(r"(?<![\w.])V?(\d{1,6}(?:\.\d{1,6}){1,3})", re.ASCII)
_PLAIN = re.compile(r"\bversion (\d{1,4})\b", re.ASCII)


def version_numbers(text: str) -> tuple[int, ...] | None:
    """Return the version in what a compiler says of itself; None if there is none.

    What stands in parentheses is the packager's, and passed over. Of several versions the longest counts, and of
    equally long ones the first: nvcc says ``release 12.4, V12.4.131``.
    """
    bare = _IN_PARENTHESES.sub(" ", text)
    dotted: list[str] = _DOTTED.findall(bare)
    if dotted:
        best = max(dotted, key=lambda number: number.count("."))
        return tuple(int(part) for part in best.split("."))
    plain = _PLAIN.search(bare)
    return (int(plain[1]),) if plain else None


class Compiler(Fact, frozen=True, kw_only=True):
    """A compiler.

    Args:
        path: Its executable, the home folder folded to ``~``.
        version: The line of its ``--version`` that holds the version: the first one, for NVIDIA's tools a later one.
    """

    path: str
    version: str | Missing

    @property
    def numbers(self) -> tuple[int, ...] | Missing:
        """Its version as numbers, such as ``(12, 2, 0)``."""
        if isinstance(self.version, Missing):
            return self.version
        return version_numbers(self.version) or Missing(reason=f"no version in {self.version[:100]!r}")


class Toolchain(Fact, frozen=True, kw_only=True):
    """The compilers that are found as torch and Triton look for them; None where there is none.

    Args:
        c: For Triton's launchers: the variable CC, then gcc, clang, cc.
        cxx: For Inductor's CPU code: the variable CXX, then g++, clang++, c++.
        nvcc: For CUDA extensions: in CUDA_HOME, else CUDA_PATH; where neither is set the one on PATH, then
            ``/usr/local/cuda``.
        ptxas: NVIDIA's assembler outside of Triton: the variable TRITON_PTXAS_PATH, then beside nvcc, then PATH.
        cuda_home: The value of CUDA_HOME, else of CUDA_PATH; None where neither is set.
        libcuda: The driver's ``libcuda.so.1`` where Triton looks: TRITON_LIBCUDA_PATH, the loader's cache,
            LD_LIBRARY_PATH.
        libcuda_for_linking: Whether ``libcuda.so`` lies beside it or where the compiler's linker looks anyway: Triton
            links with ``-lcuda``, which needs that name; None where there is no ``libcuda.so.1``.
        libcuda_elsewhere: Other usual places of the driver that do hold a ``libcuda.so.1``.
    """

    c: Compiler | None
    cxx: Compiler | None
    nvcc: Compiler | Missing | None = NOT_GATHERED
    ptxas: Compiler | Missing | None = NOT_GATHERED
    cuda_home: str | None = None
    libcuda: str | Missing | None = NOT_GATHERED
    libcuda_for_linking: bool | Missing | None = NOT_GATHERED
    libcuda_elsewhere: tuple[str, ...] = ()
