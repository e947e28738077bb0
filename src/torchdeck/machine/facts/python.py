"""A Python, and the torch in it."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class TorchBuild(Fact, frozen=True, kw_only=True):
    """An installed torch, read from its files, without importing it.

    Args:
        version: Such as ``2.6.0+cu124``.
        cuda: Such as ``12.4``; None for a CPU build.
    """

    version: str
    cuda: str | None


class PythonFacts(Fact, frozen=True, kw_only=True):
    """A Python interpreter.

    Args:
        path: Its executable, the home folder folded to ``~``.
        version: Such as ``3.11.7``.
        implementation: ``cpython``.
        headers: Where ``Python.h`` is; None where it is not.
        torch: The torch in its environment; None if there is none.
    """

    path: str
    version: str
    implementation: str
    headers: str | Missing | None
    torch: TorchBuild | Missing | None
