"""Logs as lines: from standard input, files, folders of one file a rank, plain or compressed. Memory stays bounded."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from torchdeck.errors import UsageError

# A line without an end must not fill the memory: it is cut into pieces of this length.
_MAX_LINE_BYTES = 64_000
_MAX_FILES = 4096
_MAGIC = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_SKIPPED = {".pt", ".pth", ".safetensors", ".npz", ".npy", ".so", ".whl", ".png", ".pyc"}


def read_stream(stream: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """Return the lines of a stream, with their numbers and no file name."""
    yield from _lines(_opened(io.BufferedReader(_Raw(stream)) if not hasattr(stream, "peek") else stream), "")


class _Raw(io.RawIOBase):
    """A stream that can only be read, as one that can be peeked into."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def read_paths(paths: list[Path]) -> Iterator[tuple[int, str, str]]:
    """Return the lines of files, and of the files in folders, one file after the other.

    Raises:
        UsageError: A path does not exist, cannot be read, or is a damaged archive.
    """
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file() and file.suffix not in _SKIPPED)
            if not files:
                raise UsageError(f"{path} holds no file", needs="a folder of logs")
            for file in files[:_MAX_FILES]:
                yield from _read(file, shown=str(file.relative_to(path)))
        else:
            yield from _read(path, shown=str(path) if len(paths) > 1 else "")


def _read(path: Path, shown: str) -> Iterator[tuple[int, str, str]]:
    try:
        with path.open("rb") as file:
            yield from _lines(_opened(file), shown)
    except (OSError, EOFError, lzma.LZMAError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read", found=said, mend=f"ls -l {path}") from None


def _opened(stream: IO[bytes]) -> IO[bytes]:
    """Return a stream of what is inside, if it is compressed."""
    start = stream.peek(6)[:6] if hasattr(stream, "peek") else b""
    for magic, opener in _MAGIC.items():
        if start.startswith(magic):
            return opener(stream, "rb")  # type: ignore[no-any-return, operator]
    return stream


def _lines(stream: IO[bytes], file: str) -> Iterator[tuple[int, str, str]]:
    number = 0
    while True:
        raw = stream.readline(_MAX_LINE_BYTES)
        if not raw:
            return
        number += 1
        yield number, raw.rstrip(b"\r\n").decode("utf-8", "replace"), file


def is_terminal(stream: IO[bytes]) -> bool:
    """Whether a stream is a terminal, from which no log will come."""
    try:
        return os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False
