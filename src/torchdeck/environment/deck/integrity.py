"""Whether an environment still is what its lock says, without importing anything of it.

It compares versions with the lock, and every file with the size that its package's RECORD gives: a file that was
removed, cut off or replaced by a longer one is found in under a second. It does not hash five gigabytes.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

from torchdeck.environment.deck.paths import site_packages
from torchdeck.environment.lock import Lock, is_protected, normalized


@dataclass(frozen=True)
class Damage:
    """What is wrong with an environment.

    Args:
        missing: Packages of the lock that are not there at all.
        changed: Name and version found, where torch or one of its libraries is not the one of the lock.
        broken: Packages of which files are missing or have another size, each with one such file.
        moved: Other packages of which the user installed another version: their right, and no damage.
    """

    missing: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.missing or self.changed or self.broken)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages to install again."""
        return (*self.missing, *(name for name, _ in self.changed), *(name for name, _ in self.broken))

    def describe(self) -> str:
        """Return it in one line."""
        parts = [f"{name} is missing" for name in self.missing]
        parts += [f"{name} is {version}" for name, version in self.changed]
        parts += [f"{name}: {file}" for name, file in self.broken]
        shown = "; ".join(parts[:4])
        return shown if len(parts) <= 4 else f"{shown}; and {len(parts) - 4} more"


def installed_packages(environment: Path) -> dict[str, tuple[str, Path]]:
    """Return name -> (version, dist-info folder) of what an environment holds."""
    packages = site_packages(environment)
    found: dict[str, tuple[str, Path]] = {}
    if packages is None:
        return found
    for info in packages.glob("*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        if (info / "METADATA").is_file():
            found[normalized(name)] = (version, info)
    return found


def inspect(environment: Path, lock: Lock) -> Damage:
    """Compare an environment with its lock."""
    installed = installed_packages(environment)
    missing: list[str] = []
    changed: list[tuple[str, str]] = []
    moved: list[tuple[str, str]] = []
    broken: list[tuple[str, str]] = []
    for name, version in lock.versions.items():
        if name not in installed:
            missing.append(name)
        elif not _same(installed[name][0], version):
            (changed if is_protected(name) else moved).append((name, installed[name][0]))
        else:
            trouble = _first_trouble(installed[name][1])
            if trouble:
                broken.append((name, trouble))
    return Damage(tuple(missing), tuple(changed), tuple(broken), tuple(moved))


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    from packaging.version import InvalidVersion, Version

    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _first_trouble(info: Path) -> str:
    """Return what is wrong with one package's files, empty if nothing is."""
    root = str(info.parent)
    try:
        with (info / "RECORD").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, csv.Error, UnicodeDecodeError):
        return "its RECORD cannot be read"
    for row in rows:
        if len(row) < 3 or row[0].endswith((".pyc", "/RECORD", "/INSTALLER", "/direct_url.json")):
            continue
        try:
            size = os.stat(os.path.join(root, row[0])).st_size  # noqa: PTH116, PTH118 - 40,000 files: pathlib costs double
        except OSError:
            return f"{row[0]} is gone"
        if row[2] and "share/jupyter" not in row[0] and size != int(row[2]):
            return f"{row[0]} has {size} bytes instead of {row[2]}"
    return ""
