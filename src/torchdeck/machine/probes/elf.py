"""The few things that are read from a shared library's file: what it needs, where it looks, its constants.

Only 64-bit little-endian files (x86_64, aarch64). It reads headers and the asked parts, never the whole file, with
plain reads: a file that is cut off meanwhile gives nothing, not a crash.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# Returns bytes from an offset on, fewer at the end of the file.
Read = Callable[[int, int], bytes]

_DYNAMIC, _LOAD = 2, 1
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_MAX_TEXT = 8192
_MAX_CONSTANTS = 64_000_000
_MAX_ENTRIES = 4096
_MAX_SIZE = 1024


@dataclass(frozen=True)
class Dynamic:
    """What the loader is told by a library.

    Args:
        needed: The names of the libraries that it needs, in their order.
        rpath: Where they are looked for before LD_LIBRARY_PATH.
        runpath: Where they are looked for after it; where this is set, ``rpath`` is ignored.
    """

    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


def read_dynamic(path: Path) -> Dynamic | None:
    """Return what a library tells the loader; None if it cannot be read, or is no such file."""
    return _with_file(path, parse_dynamic)


def read_constants(path: Path) -> bytes | None:
    """Return the constants of a library (section ``.rodata``); None if it cannot be read, or has none."""
    return _with_file(path, parse_constants)


def parse_dynamic(read: Read) -> Dynamic | None:
    """Do the work of ``read_dynamic`` on any source of bytes. It raises nothing on any content."""
    try:
        return _dynamic(read)
    except (struct.error, OverflowError, ValueError, MemoryError):
        return None


def parse_constants(read: Read) -> bytes | None:
    """Do the work of ``read_constants`` on any source of bytes. It raises nothing on any content."""
    try:
        return _constants(read)
    except (struct.error, OverflowError, ValueError, MemoryError):
        return None


def _with_file(path: Path, parse: Callable[[Read], T | None]) -> T | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        return parse(lambda offset, size: os.pread(descriptor, size, offset))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _header(read: Read) -> bytes | None:
    header = read(0, 64)
    return header if len(header) == 64 and header[:6] == b"\x7fELF\x02\x01" else None


def _dynamic(read: Read) -> Dynamic | None:
    header = _header(read)
    if header is None:
        return None
    offset, size, number = *struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54)
    if not 56 <= size <= _MAX_SIZE or number > _MAX_ENTRIES:
        return None
    table = read(offset, size * number)
    segments = [struct.unpack_from("<IIQQQQ", table, size * index) for index in range(number)]
    place = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
    if place is None:
        return Dynamic()
    entries = read(place[2], min(place[5], 16 * _MAX_ENTRIES))
    tags = [struct.unpack_from("<QQ", entries, at) for at in range(0, len(entries) - 15, 16)]
    values = dict(reversed(tags))
    if _STRTAB not in values:
        return None
    address = values[_STRTAB]
    # The table of strings is given by its place in memory: the segment that is loaded there says where in the file.
    loaded = next((s for s in segments if s[0] == _LOAD and s[3] <= address < s[3] + s[5]), None)
    if loaded is None:
        return None
    strings = address - loaded[3] + loaded[2]

    def text(at: int) -> str:
        return os.fsdecode(read(strings + at, _MAX_TEXT).partition(b"\0")[0])

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(part for part in text(values[tag]).split(":") if part) if tag in values else ()

    needed = tuple(name for tag, value in tags if tag == _NEEDED and (name := text(value)))
    return Dynamic(needed=needed, rpath=folders(_RPATH), runpath=folders(_RUNPATH))


def _constants(read: Read) -> bytes | None:
    header = _header(read)
    if header is None:
        return None
    (offset,) = struct.unpack_from("<Q", header, 40)
    size, number, names_at = struct.unpack_from("<HHH", header, 58)
    if not 64 <= size <= _MAX_SIZE or number > _MAX_ENTRIES:
        return None
    table = read(offset, size * number)
    sections = [struct.unpack_from("<IIQQQQ", table, size * index) for index in range(number)]
    names = read(sections[names_at][4], min(sections[names_at][5], 1_000_000)) if names_at < number else b""
    for section in sections:
        end = names.find(b"\0", section[0])
        if names[section[0] : max(end, 0)] == b".rodata":
            return read(section[4], min(section[5], _MAX_CONSTANTS))
    return None
