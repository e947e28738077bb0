"""Reads the catalogue's files, once a process."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import msgspec

from torchdeck import toml

# The release that every promise of this project is about, taken wherever it runs.
REFERENCE = "2.6.0"
Method = Literal["verified", "read", "inferred"]
ComputeCapability = tuple[int, int]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has.

    Args:
        method: How it is known.
        source: Where it was found.
        date: When, as ISO date.
    """

    method: Method
    source: str
    date: str


class Release(Row, frozen=True, kw_only=True):
    """A torch release.

    Args:
        torch: Its version.
        pythons: The first and the last Python minor version that has wheels, such as ``("3.9", "3.13")``.
        torchvision: The version that goes with it.
        torchvision_pythons: The Pythons that torchvision has wheels for, where that differs.
        torchaudio: The version that goes with it; empty where there is none.
    """

    torch: str
    pythons: tuple[str, str]
    torchvision: str
    torchaudio: str
    torchvision_pythons: tuple[str, str] | None = None


class BuildRow(Row, frozen=True, kw_only=True):
    """One build of a release for one processor architecture.

    Args:
        variant: ``cu124``, ``cpu``.
        index: ``pypi``, or ``pytorch/NAME`` for PyTorch's own.
        arch: ``x86_64`` or ``aarch64``.
        cudnn: Version of the library that it pins; empty where that is not known. So ``nccl`` and ``triton``.
        targets: The row of its GPU code; empty for the CPU.
        pythons: The Pythons that it has wheels for, where that differs from its release.
    """

    torch: str
    variant: str
    index: str
    arch: str
    cudnn: str = ""
    nccl: str = ""
    triton: str = ""
    targets: str = ""
    pythons: tuple[str, str] | None = None

    @property
    def cuda(self) -> str:
        """The CUDA release, such as ``12.4``; empty for the CPU."""
        digits = self.variant.removeprefix("cu")
        return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else ""


class GpuTargets(Row, frozen=True, kw_only=True):
    """The GPU code in a build: machine code, and intermediate code that the driver can compile."""

    binary: tuple[ComputeCapability, ...]
    ptx: tuple[ComputeCapability, ...]


class Cuda(msgspec.Struct, frozen=True, kw_only=True):
    """What a CUDA release asks of the driver: ``floor`` to run at all, ``bundled`` for every feature."""

    floor: str
    bundled: str


@lru_cache(maxsize=1)
def releases() -> tuple[Release, ...]:
    """Return the releases, oldest first."""
    return tuple(msgspec.convert(row, Release) for row in _stacks()["release"])


@lru_cache(maxsize=1)
def builds() -> tuple[BuildRow, ...]:
    """Return the builds, those of the oldest release first."""
    return tuple(msgspec.convert(row, BuildRow) for row in _stacks()["build"])


@lru_cache(maxsize=1)
def gpu_targets() -> dict[str, GpuTargets]:
    """Return the GPU code of each kind of build."""
    rows = {name: row for name, row in _read("gpu_targets.toml").items() if name != "tegra"}
    return {name: msgspec.convert(_with_pairs(row, "binary", "ptx"), GpuTargets) for name, row in rows.items()}


@lru_cache(maxsize=1)
def tegra() -> frozenset[ComputeCapability]:
    """Return the compute capabilities whose machine code fits no other chip."""
    row = _with_pairs(_read("gpu_targets.toml")["tegra"], "cc")
    return frozenset(row["cc"])


@cache
def cuda_of(version: str) -> Cuda:
    """Return what a CUDA release such as ``12.4`` asks of the driver."""
    table = _read("cuda.toml")
    return Cuda(floor=table["floor"][version.split(".", maxsplit=1)[0]], bundled=table["bundled"][version])


@lru_cache(maxsize=1)
def _stacks() -> dict[str, Any]:
    return _read("stacks.toml")


@cache
def _read(name: str) -> dict[str, Any]:
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    return dict(toml.loads(text))


def _with_pairs(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a row with its texts such as ``8.6`` as pairs."""
    pairs = {name: tuple(_pair(text) for text in row[name]) for name in names}
    return {**row, **pairs}


def _pair(text: str) -> ComputeCapability:
    major, minor = text.split(".")
    return int(major), int(minor)
