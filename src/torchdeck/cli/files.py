"""The files that ``torchdeck doctor`` is given: found, read, and each refusal explained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdeck.machine.records import Finding


def judge_files(paths: Sequence[Path]) -> list[Finding]:
    """Judge files, and of each folder the files of a known kind that lie directly in it.

    Raises:
        UsageError: One cannot be read, is not text, is too large, or is of no known kind.
    """
    from torchdeck.machine.files import judge_file
    from torchdeck.machine.records import SEVERITIES

    found = [finding for path in _listed(paths) for finding in judge_file(str(path), _text(path))]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _listed(paths: Sequence[Path]) -> list[Path]:
    """Return the files, each once, in the order given."""
    from torchdeck.errors import UsageError
    from torchdeck.machine.files import KNOWN, kind_by_name

    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        try:
            inside = sorted(path.iterdir())
        except OSError as error:
            raise UsageError(f"{path} cannot be read", found=error.strerror or str(error)) from None
        known = [file for file in inside if kind_by_name(file.name) and file.is_file()]
        known += [file for file in [path / ".devcontainer" / "devcontainer.json"] if file.is_file()]
        if not known:
            raise UsageError(f"{path} holds no file that is judged", needs=KNOWN)
        files += known
    return list(dict.fromkeys(files))


def _text(path: Path) -> str:
    from torchdeck.errors import UsageError
    from torchdeck.machine.files import FILE_LIMIT_BYTES

    try:
        if not path.is_file() and path.exists():
            raise UsageError(f"{path} is not a file")
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", found=error.strerror or str(error)) from None
    if len(data) > FILE_LIMIT_BYTES:
        raise UsageError(f"{path} is too large to be judged", needs=f"at most {FILE_LIMIT_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text", found=str(error)) from None
    if "\0" in text:
        raise UsageError(f"{path} is not text", found="a byte of zero")
    return text
