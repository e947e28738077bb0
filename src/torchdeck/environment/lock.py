"""The lock: the exact packages of a deck with their hashes, one format for every kind of deck.

A lock is a pip requirements file with hashes, so that pip and uv can install it without torchdeck, under a head
of comment lines that says what it was made for. It names no index: the same lock works behind any mirror. It does
not hold what cannot be hashed (editable and version-control requirements); those are listed in its head.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchdeck import toml
from torchdeck.errors import FindingsError, UsageError

LOCK_NAME = "torchdeck.lock"
_FORMAT = "torchdeck-lock 1"
_MAX_BYTES = 20_000_000
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """One locked package. ``size_bytes`` is that of its wheel, 0 where the index does not tell."""

    name: str
    version: str
    hashes: tuple[str, ...]
    size_bytes: int = 0


class LockHead(msgspec.Struct, frozen=True, kw_only=True):
    """What a lock was made for. Two decks may share a lock only if all of this is equal."""

    torch: str
    variant: str
    python: str
    platform: str
    inputs: str
    unlocked: tuple[str, ...] = ()


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock: its head and its packages, sorted by name."""

    head: LockHead
    packages: tuple[Package, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Return name -> version."""
        return {package.name: package.version for package in self.packages}

    @property
    def download_bytes(self) -> int:
        """Return the size of all wheels together, in bytes."""
        return sum(package.size_bytes for package in self.packages)


def normalized(name: str) -> str:
    """Return a package name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def inputs_digest(lines: Iterable[str]) -> str:
    """Return the digest of what was asked for, so that a lock knows whether it still answers it."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def packages_from_pylock(text: str) -> tuple[Package, ...]:
    """Read uv's ``pylock.toml`` (PEP 751).

    Raises:
        FindingsError: A package has neither wheel nor source archive with a sha256.
    """
    packages = []
    for entry in toml.loads(text).get("packages", []):
        files: list[Mapping[str, Any]] = list(entry.get("wheels", []))
        source = entry.get("sdist")
        # uv takes a wheel wherever there is one; the archive is needed only where there is none.
        size = max((int(file.get("size", 0)) for file in files or ([source] if source else [])), default=0)
        if source:
            files.append(source)
        hashes = sorted({f"sha256:{file['hashes']['sha256']}" for file in files if "sha256" in file.get("hashes", {})})
        if not hashes:
            raise FindingsError(
                f"the package index gives no hash for {entry['name']}",
                found="files without sha256",
                needs="an index or mirror that publishes hashes",
            )
        packages.append(
            Package(name=normalized(entry["name"]), version=entry["version"], hashes=tuple(hashes), size_bytes=size)
        )
    return tuple(sorted(packages, key=lambda package: package.name))


def render_lock(lock: Lock) -> str:
    """Return the text of a lock file."""
    head = lock.head
    lines = [
        f"# {_FORMAT}",
        "# Made by torchdeck: commit it, so that everyone gets the same environment.",
        f"# torch: {head.torch}",
        f"# variant: {head.variant}",
        f"# python: {head.python}",
        f"# platform: {head.platform}",
        f"# inputs: {head.inputs}",
        *(f"# unlocked: {line}" for line in head.unlocked),
        "",
    ]
    for package in lock.packages:
        size = f"  # {package.size_bytes} bytes" if package.size_bytes else ""
        pins = [f"{package.name}=={package.version}", *(f"--hash={digest}" for digest in package.hashes)]
        lines.append(" \\\n    ".join(pins) + size)
    return "\n".join(lines) + "\n"


def parse_lock(text: str, origin: str = LOCK_NAME) -> Lock:
    """Read a lock file.

    Raises:
        UsageError: It is not a lock, is damaged, or was made by a later torchdeck.
    """
    lines = text.splitlines()
    mend = "torchdeck up --relock"
    if not lines or not lines[0].startswith("# torchdeck-lock "):
        raise UsageError(f"{origin} is not a torchdeck lock", found=(lines or ["an empty file"])[0][:80], mend=mend)
    if lines[0] != f"# {_FORMAT}":
        raise UsageError(f"{origin} was made by another torchdeck", found=lines[0][2:40], needs=_FORMAT, mend=mend)
    head: dict[str, Any] = {"unlocked": []}
    for line in lines[1:]:
        match = re.match(r"^# (torch|variant|python|platform|inputs|unlocked): (.*)$", line)
        if match and match[1] == "unlocked":
            head["unlocked"].append(match[2])
        elif match:
            head[match[1]] = match[2]
    packages = []
    for entry in re.sub(r"\\\s*\n", " ", text).splitlines():
        entry = entry.strip()
        if not entry or entry.startswith("#"):
            continue
        pin, hashes = _PIN.match(entry), _HASH.findall(entry)
        if pin is None or not hashes:
            raise UsageError(f"{origin} has a line that is no locked package", found=entry[:120], mend=mend)
        size = re.search(r"# (\d{1,15}) bytes$", entry)
        packages.append(
            Package(
                name=normalized(pin["name"]),
                version=pin["version"],
                hashes=tuple(hashes),
                size_bytes=int(size[1]) if size else 0,
            )
        )
    try:
        return Lock(head=msgspec.convert(head, LockHead), packages=tuple(packages))
    except msgspec.ValidationError as error:
        raise UsageError(f"{origin} is damaged", found=str(error), mend=mend) from None


def read_lock(path: Path) -> Lock | None:
    """Read a lock file; None if there is none.

    Raises:
        UsageError: It is unreadable, too large, or no lock.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} is too large", found=f"{path.stat().st_size} bytes", mend=f"rm {path}")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text", mend="torchdeck up --relock") from None
    return parse_lock(text, str(path))


def render_preferences(lock: Lock) -> str:
    """Return a lock's versions as a pylock without files, from which uv takes its preferences."""
    lines = ['lock-version = "1.0"', 'created-by = "torchdeck"']
    for package in lock.packages:
        lines += ["", "[[packages]]", f'name = "{package.name}"', f'version = "{package.version}"']
    return "\n".join(lines) + "\n"


# What `pip install` in a deck may never replace: torch, its companions, and the libraries that torch itself pins.
_PROTECTED = re.compile(r"^(torch|torchvision|torchaudio|triton|pytorch-triton|sympy|nvidia-.*|cuda-.*)$")


def is_protected(name: str) -> bool:
    """Whether a package is torch, a companion of it, or a library that torch pins."""
    return _PROTECTED.match(name) is not None


def render_constraints(lock: Lock) -> str:
    """Return the constraints that keep torch and its libraries as they were locked, for pip and uv."""
    pins = [f"{name}=={version}" for name, version in sorted(lock.versions.items()) if is_protected(name)]
    return "\n".join(["# Keeps torch and its CUDA libraries matched: made by torchdeck.", *pins]) + "\n"
