"""A Python: the one that runs this, or another by its path. torch is read from its files, never imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchdeck import places, runner
from torchdeck.machine.facts import Missing, PythonFacts
from torchdeck.machine.probes import about_python
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.torch_build import gather_torch_build

_TIMEOUT_S = 10.0
_TORCH_TIMEOUT_S = 5.0
_MAX_MARKER_CHARS = 100


def gather_python(path: Path | None = None) -> PythonFacts | Missing:
    """Return a Python and the torch in its environment.

    Args:
        path: Its executable; the Python that runs this when None.
    """
    about: dict[str, Any]
    if path is None:
        import sys

        about, path = about_python.about(), Path(sys.executable)
    else:
        answer = _ask(path)
        if isinstance(answer, Missing):
            return answer
        about = answer
    header = Path(about["include"]) / "Python.h"
    return PythonFacts(
        path=places.fold_home(str(path)),
        version=about["version"],
        implementation=about["implementation"],
        headers=places.fold_home(str(header)) if header.is_file() else None,
        torch=bounded(lambda: gather_torch_build(about), what="torch's files", timeout_s=_TORCH_TIMEOUT_S),
        deck=_deck(Path(about["prefix"])),
    )


def _ask(path: Path) -> dict[str, Any] | Missing:
    """Run another Python; ``-I`` keeps its user's variables out."""
    done = runner.run([str(path), "-I", about_python.__file__], timeout_s=_TIMEOUT_S)
    if not done.ok:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1]
        return Missing(reason=f"{places.fold_home(str(path))} does not run: {said}"[:300])
    try:
        # A sitecustomize may print first.
        about = json.loads((done.stdout.strip().splitlines() or [""])[-1])
    except ValueError:
        about = None
    if not isinstance(about, dict) or "folders" not in about:
        return Missing(reason=f"{places.fold_home(str(path))} does not answer like a Python: {done.stdout[:100]!r}")
    return about


def _deck(prefix: Path) -> str | None:
    """Return the name in the file by which torchdeck marks the environments that it made."""
    try:
        with (prefix / ".torchdeck").open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_MARKER_CHARS).strip() or None
    except OSError:
        return None
