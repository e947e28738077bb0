"""Every error a user can meet, each with its exit code.

::

    TorchdeckError
    ├── UsageError         2   the command, a setting or a file the user wrote is wrong (also a ValueError)
    ├── FindingsError      1   the machine or the environment is not as it must be
    ├── OutsideError       4   something outside torchdeck is missing
    │   ├── NetworkError       an index, mirror or proxy cannot be reached
    │   ├── DiskError          no space left, or no permission to write
    │   └── ToolError          a program that is needed is absent or failed
    └── InternalError      3   our own bug

An interrupted command ends with 130. ``torchdeck run`` and ``torchdeck exec`` pass on the exit code of what
they ran, and use 125 when torchdeck itself failed.
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_FINE = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 3
EXIT_OUTSIDE = 4
EXIT_WRAPPER = 125
EXIT_INTERRUPTED = 130


class TorchdeckError(Exception):
    """An error that says what happened, what was found, what was needed and what mends it.

    Args:
        title: What happened, in one line.
        found: What is there.
        needs: What was needed instead.
        mend: Commands that mend it, best first.
        rule: The permanent id of the cause in the catalogue, if it is one of the known kinds.
        detail: Longer text, such as the last lines of a log.
    """

    exit_code = EXIT_FINDINGS

    def __init__(
        self,
        title: str,
        *,
        found: str = "",
        needs: str = "",
        mend: str | Sequence[str] = (),
        rule: str = "",
        detail: str = "",
    ) -> None:
        super().__init__(title)
        self.title = title
        self.found = found
        self.needs = needs
        self.mend: tuple[str, ...] = (mend,) if isinstance(mend, str) else tuple(mend)
        self.rule = rule
        self.detail = detail


class UsageError(TorchdeckError, ValueError):
    """The command line, a setting or a file the user wrote is wrong."""

    exit_code = EXIT_USAGE


class FindingsError(TorchdeckError):
    """The machine, or an environment on it, is not as it must be."""

    exit_code = EXIT_FINDINGS


class OutsideError(TorchdeckError):
    """Something outside torchdeck is missing: a daemon, a permission, the network."""

    exit_code = EXIT_OUTSIDE


class NetworkError(OutsideError):
    """A package index, mirror or proxy cannot be reached."""


class DiskError(OutsideError):
    """There is no space left, or no permission to write."""


class ToolError(OutsideError):
    """A program that is needed is absent, or failed."""


class InternalError(TorchdeckError):
    """A bug of torchdeck's own."""

    exit_code = EXIT_INTERNAL
