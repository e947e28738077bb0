"""Facts for a command: of this machine, or from a file that another one wrote."""

from __future__ import annotations

from pathlib import Path

from torchdeck.errors import UsageError
from torchdeck.machine.facts import Facts


def facts_from(file: Path | None, python: Path | None = None) -> Facts:
    """Return the facts in a file, or gather those of this machine.

    Raises:
        UsageError: The file cannot be read, or is no fact file; or a Python is named beside it.
    """
    from torchdeck.machine.facts import decode_facts
    from torchdeck.machine.facts.aggregate import MAX_BYTES
    from torchdeck.machine.probes import gather

    if file is None:
        return gather(python)
    if python is not None:
        raise UsageError("--python and --facts exclude each other", needs="one of them")
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read", found=error.strerror or str(error), mend="torchdeck doctor --save host.json"
        ) from None
    return decode_facts(data, str(file))
