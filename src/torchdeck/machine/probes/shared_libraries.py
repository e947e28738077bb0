"""Where the loader would find a shared library, without loading it.

It goes the loader's way: LD_LIBRARY_PATH, the cache that ``ldconfig`` wrote, the two system folders. What a program
adds for itself (RPATH) is not seen, nor are the folders for special processors.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from torchdeck import places
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.nvidia import DriverLibrary

_CACHE = "etc/ld.so.cache"
_MAX_CACHE_BYTES = 20_000_000
_SYSTEM = ("lib", "usr/lib", "lib64", "usr/lib64")
_MAX_LINKS = 10
_VERSION = re.compile(r"\.so\.(\d{2,4}\.\d+(?:\.\d+)?)$", re.ASCII)
_ELF_64 = b"\x7fELF\x02"


def find_library(soname: str, root: Path, search: str) -> DriverLibrary | None:
    """Return the file behind a library's name; None if the loader has none.

    Args:
        soname: Such as ``libcuda.so.1``.
        root: ``/``.
        search: The value of LD_LIBRARY_PATH.
    """
    folders = [_inside(root, part) for part in search.split(":") if part.startswith("/")]
    cached = [_inside(root, path) for path in _cached(root, soname)]
    candidates = [folder / soname for folder in folders] + cached + [root / name / soname for name in _SYSTEM]
    for candidate in candidates:
        file = _follow(candidate, root)
        if file is not None:
            shown = os.path.normpath("/" + str(file.relative_to(root)))
            match = _VERSION.search(file.name)
            version = match[1] if match else Missing(reason=f"no version in the name {file.name}")
            return DriverLibrary(path=places.fold_home(shown), version=version)
    return None


def _cached(root: Path, soname: str) -> list[str]:
    """Return the paths that ldconfig's cache names for a library: they stand in it as plain, zero-ended text."""
    file = root / _CACHE
    try:
        if file.stat().st_size > _MAX_CACHE_BYTES:
            return []
        data = file.read_bytes()
    except OSError:
        return []
    pattern = rb"(?<=\x00)(/[^\x00]{1,4000}/" + re.escape(soname.encode()) + rb")(?=\x00)"
    return list(dict.fromkeys(os.fsdecode(path) for path in re.findall(pattern, data)))


def _follow(path: Path, root: Path) -> Path | None:
    """Return the file that a chain of links ends at, absolute ones taken from the root; None if it ends nowhere.

    A library of another word size than 64 bits is skipped, as the loader does.
    """
    for _ in range(_MAX_LINKS):
        try:
            target = path.readlink()
        except (OSError, ValueError):
            break
        path = _inside(root, str(target)) if target.is_absolute() else path.parent / target
    try:
        with path.open("rb") as stream:
            return path if stream.read(len(_ELF_64)) == _ELF_64 else None
    except (OSError, ValueError):
        return None


def _inside(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
