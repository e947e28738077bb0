"""A probe's safety net: a time limit, and ``Missing`` instead of an exception."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from torchdeck.machine.facts import Missing

T = TypeVar("T")


def bounded(probe: Callable[[], T], *, what: str, timeout_s: float) -> T | Missing:
    """Run a probe and return its value, or ``Missing`` with the reason.

    A call that hangs inside a library cannot be ended; it is left behind in a thread that does not keep the process
    alive.
    """
    results: list[T | Missing] = []

    def work() -> None:
        try:
            results.append(probe())
        except Exception as error:
            results.append(Missing(reason=f"{what}: {type(error).__name__}: {error}"[:300]))

    thread = threading.Thread(target=work, name=f"probe {what}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return results[0] if results else Missing(reason=f"{what} did not answer within {timeout_s:g} s")
