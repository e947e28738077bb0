"""Gathering: one source a file, each bounded in time. What cannot be known is ``Missing``; nothing here advises.

``gather`` is loaded on first use: who reads a log needs no probe of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchdeck.machine.probes.all_facts import gather, gather_for_stack

__all__ = ["gather", "gather_for_stack"]


def __getattr__(name: str) -> Any:
    """Load a public name from the room that owns it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torchdeck.machine.probes import all_facts

    return getattr(all_facts, name)
