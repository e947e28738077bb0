"""Confirm the catalogue's rows that the ordinary package index can confirm: pins, Pythons, companions.

    python tools/catalogue_check.py            metadata only, a few minutes
    python tools/catalogue_check.py --targets  the GPU code too: downloads every wheel, one after the other

Rows on PyTorch's own index cannot be confirmed from the ordinary one; they keep their mark ``read``. It ends with 1
where a row differs from what was published, and with 4 where the index does not answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import catalogue_regenerate as published

from torchdeck.machine.catalogue import BuildRow, Release, builds, gpu_targets, releases


def _next(python: str, step: int) -> str:
    major, minor = python.split(".")
    return f"{major}.{int(minor) + step}"


def differences(row: BuildRow, release: Release, *, with_targets: bool) -> list[str]:
    """Return how a row differs from the published wheel, in words."""
    name = f"{row.torch} {row.arch}"
    first, last = row.pythons or release.pythons
    found = published.metadata(row.torch, row.arch, last)
    if found is None:
        return [f"{name}: no wheel for Python {last}"]
    wrong = []
    if published.metadata(row.torch, row.arch, first) is None:
        wrong.append(f"{name}: no wheel for Python {first}")
    wrong += [
        f"{name}: has a wheel for Python {beyond}, which the catalogue does not list"
        for beyond in (_next(first, -1), _next(last, 1))
        if published.metadata(row.torch, row.arch, beyond) is not None
    ]
    if row.variant != "cpu":
        pins = published.pins(found)
        wrong += [
            f"{name}: {library} is {pins[library]}, the catalogue has {getattr(row, library)}"
            for library in ("cudnn", "nccl", "triton")
            if pins[library] != getattr(row, library)
        ]
        cuda = pins["cuda_runtime"] or published.cuda_toolkit(found)
        if not cuda.startswith(row.cuda + "."):
            wrong.append(f"{name}: CUDA is {cuda}, the catalogue has {row.cuda}")
    if with_targets:
        held = published.targets(row.torch, row.arch, last)
        listed = gpu_targets()[row.targets] if row.targets else None
        expected = [f"sm_{a}{b}" for a, b in listed.binary] if listed else []
        if held != expected:
            wrong.append(f"{name}: GPU code is {held}, the catalogue has {expected}")
    return wrong


def companion_differences(release: Release) -> list[str]:
    """Return where torchvision's own metadata asks for another torch."""
    last = (release.torchvision_pythons or release.pythons)[1]
    found = published.metadata(release.torchvision, "x86_64", last, package="torchvision")
    if found is None:
        return [f"torchvision {release.torchvision}: no wheel for Python {last}"]
    lines = [line for line in found.get("requires_dist", []) if re.match(r"torch\b", line)]
    exact = next((m[1] for line in lines if (m := re.search(r"==([0-9.]+)", line))), None)
    if exact is not None and exact != release.torch:
        return [
            f"torchvision {release.torchvision} asks for torch {exact}, the catalogue pairs it with {release.torch}"
        ]
    return []


def main() -> int:
    """Print each difference, and the count of confirmed rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", action="store_true")
    arguments = parser.parse_args()
    if published.metadata("2.6.0", "x86_64", "3.11") is None:
        print("error: the package index does not answer, or does not serve torch 2.6.0", file=sys.stderr)
        return 4
    by_torch = {release.torch: release for release in releases()}
    rows = [row for row in builds() if row.index == "pypi"]
    with ThreadPoolExecutor(max_workers=1 if arguments.targets else 4) as pool:
        checked = pool.map(
            lambda row: differences(row, by_torch[row.torch], with_targets=arguments.targets), rows, chunksize=1
        )
        wrong = [line for lines in checked for line in lines]
        wrong += [line for lines in pool.map(companion_differences, releases()) for line in lines]
    for line in wrong:
        print(line)
    print(f"{len(rows)} builds and {len(by_torch)} torchvision pairs looked at, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
