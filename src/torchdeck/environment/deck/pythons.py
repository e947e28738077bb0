"""The Python of a deck: the one that was asked for, found on this machine or brought by uv.

It looks where uv looks (managed ones, PATH) and in pyenv's folder, which uv does not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchdeck import places, runner
from torchdeck.environment.deck.paths import running_python
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.uv import find_uv, run_uv, uv_environment
from torchdeck.errors import NetworkError, OutsideError, UsageError

_QUERY = "import sys; print('.'.join(map(str, sys.version_info[:3])), sys.implementation.name, sys.version_info[3])"


@dataclass(frozen=True)
class Python:
    """An interpreter.

    Args:
        path: Its executable.
        version: Such as ``3.11.7``.
    """

    path: Path
    version: str

    @property
    def minor(self) -> tuple[int, int]:
        """Its version as (3, 11)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def inspect_python(path: Path) -> Python:
    """Ask an interpreter for its version.

    Raises:
        UsageError: It is no CPython that runs here.
    """
    done = runner.run([str(path), "-I", "-c", _QUERY], timeout_s=20.0)
    fields = done.stdout.split()
    if not done.ok or len(fields) < 2:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1]
        raise UsageError(f"{path} is not a Python that runs here", found=last, mend="torchdeck up --python 3.12")
    if fields[1] != "cpython":
        raise UsageError(f"{path} is {fields[1]}", needs="CPython: torch has builds for no other")
    return Python(path, fields[0])


def runs_as(path: Path, version: str) -> bool:
    """Whether an interpreter runs and is of this version."""
    try:
        return inspect_python(path).version == version
    except UsageError:
        return False


def current_python() -> Python:
    """Return the interpreter that torchdeck itself runs on."""
    return inspect_python(running_python())


def find_python(wanted: str) -> Python | None:
    """Find an interpreter on this machine.

    Args:
        wanted: A version such as ``3.12`` or ``3.12.1``, or a path.

    Raises:
        UsageError: It is neither, or the path does not run.
    """
    if "/" in wanted:
        return inspect_python(Path(wanted).expanduser().absolute())
    if not re.fullmatch(r"3(\.\d{1,2}){0,2}", wanted):
        raise UsageError(
            f"{wanted!r} is not a Python", needs="a version such as 3.12, or a path", mend="torchdeck up --python 3.12"
        )
    running = current_python()
    if _matches(running.version, wanted):
        return running
    done = runner.run(
        [find_uv(), "python", "find", "--no-python-downloads", "--no-project", wanted],
        timeout_s=60.0,
        env=uv_environment(),
        cwd=Path("/"),
    )
    candidates = [Path(done.stdout.strip())] if done.ok and done.stdout.strip() else []
    candidates += sorted((places.home() / ".pyenv" / "versions").glob(f"{wanted}*/bin/python"), reverse=True)
    for candidate in candidates:
        try:
            found = inspect_python(candidate)
        except UsageError:
            continue
        if _matches(found.version, wanted):
            return found
    return None


def _matches(version: str, wanted: str) -> bool:
    return version == wanted or version.startswith(wanted + ".")


def obtain_python(wanted: str, reporter: Reporter) -> Python:
    """Find an interpreter, or let uv bring it.

    Raises:
        OutsideError: There is none here, and none can be brought.
    """
    found = find_python(wanted)
    if found is not None:
        return found
    reporter.step(f"fetching Python {wanted}")
    try:
        run_uv(
            ["python", "install", "--no-bin", wanted], cwd=Path("/"), doing=f"fetch Python {wanted}", timeout_s=900.0
        )
    except OutsideError as error:
        raise NetworkError(
            f"there is no Python {wanted} here, and it could not be fetched",
            found=error.found,
            needs=f"Python {wanted} on PATH, or a network that reaches uv's managed Pythons",
            mend=(
                f"apt-get install python{wanted} python{wanted}-venv  (where the distribution has it)",
                "export UV_PYTHON_INSTALL_MIRROR=<your mirror>; torchdeck up",
                f"torchdeck up --python {'.'.join(map(str, current_python().minor))}  (the one that is here)",
            ),
        ) from None
    found = find_python(wanted)
    if found is None:
        raise OutsideError(f"uv fetched Python {wanted}, but it does not run here", mend="torchdeck up --python <path>")
    return found


def find_any(wanted: Sequence[str]) -> Python | None:
    """Return the first of several versions that is on this machine."""
    for version in wanted:
        found = find_python(version)
        if found is not None:
            return found
    return None
