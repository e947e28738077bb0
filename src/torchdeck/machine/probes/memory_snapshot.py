"""torch's memory snapshot, as ``torch.cuda.memory._dump_snapshot`` writes it: a pickle of plain lists and dicts.

A pickle can run code when it is loaded. This one is read by an unpickler that knows no class and no function, so that
a file which asks for any is refused. Structure: torch's documentation of ``_snapshot``: ``segments``, each with
``total_size`` and ``blocks``, each with ``size``, ``state`` and, where history was recorded, ``frames``.
"""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

from torchdeck.errors import UsageError
from torchdeck.machine.facts.memory_snapshot import Snapshot

_MAX_BYTES = 2_000_000_000
# A block that is free in the allocator's own words.
_FREE = "inactive"


class _Plain(pickle.Unpickler):
    """Loads numbers, texts, lists and dicts, and nothing that could act."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Refuse every class and function.

        Raises:
            UnpicklingError: Always.
        """
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}, which a memory snapshot never does")


def is_snapshot(path: Path) -> bool:
    """Whether a file is a pickle, by its first byte and its name."""
    try:
        with path.open("rb") as file:
            return path.suffix in (".pickle", ".pkl") and file.read(1) == b"\x80"
    except OSError:
        return False


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot.

    Raises:
        UsageError: It is none, is damaged, too large, or holds more than plain data.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is too large for a memory snapshot", found=f"{path.stat().st_size} bytes")
        with path.open("rb") as file:
            document = _Plain(file).load()  # knows no class: nothing of the file can act
        return _summary(document)
    except UsageError:
        raise
    except (OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, EOFError, RecursionError,
            MemoryError, pickle.UnpicklingError) as error:  # fmt: skip
        raise UsageError(
            f"{path} is no memory snapshot",
            found=f"{type(error).__name__}: {error}"[:200],
            needs="a file that torch.cuda.memory._dump_snapshot wrote",
        ) from None


def _summary(document: Any) -> Snapshot:
    reserved = active = free = largest = 0
    holders: Counter[str] = Counter()
    for segment in document["segments"]:
        reserved += int(segment["total_size"])
        for block in segment["blocks"]:
            size = int(block["size"])
            if block["state"] == _FREE:
                free += size
                largest = max(largest, size)
            else:
                active += size
                holders[_holder(block.get("frames") or ())] += size
    named = tuple((name, size) for name, size in holders.most_common(4) if name)
    return Snapshot(
        reserved_bytes=reserved, active_bytes=active, free_bytes=free, largest_free_bytes=largest, holders=named
    )


def _holder(frames: Any) -> str:
    """Return the innermost frame that is not torch's own."""
    for frame in frames:
        file = str(frame.get("filename", ""))
        if file.endswith(".py") and "/torch/" not in file:
            return f"{file}:{frame.get('line')} {frame.get('name')}"
    return ""
