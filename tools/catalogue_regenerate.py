"""Regenerate from the published wheels what the catalogue says of them, and print it for comparison.

For each release: the pins in its metadata (CUDA, cuDNN, NCCL, Triton), the Pythons that have a wheel, and, with
``--targets``, the GPU targets that torch was compiled for. The targets need the whole wheel (up to 900 MB each, one
at a time, deleted afterwards). It writes nothing: whoever runs it compares and edits the data with a source beside it.

    python tools/catalogue_regenerate.py 2.6.0 2.7.1
    python tools/catalogue_regenerate.py --targets --arch aarch64 2.11.0
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

_PINS = {
    "cuda_runtime": r"nvidia-cuda-runtime(?:-cu\d+)?",
    "cudnn": r"nvidia-cudnn-cu\d+",
    "nccl": r"nvidia-nccl-cu\d+",
}
_FLAGS = re.compile(rb"(?:sm|compute)_\d{2,3}a?(?: (?:sm|compute)_\d{2,3}a?)+")
# A wheel's platform tag changed over the releases; pip takes the first that it finds.
_PLATFORMS = ("manylinux_2_28_{}", "manylinux2014_{}", "manylinux1_{}", "linux_{}")
# The versions of this machine's own constraints concern other projects.
_ENV = {**os.environ, "PIP_CONSTRAINT": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pip, held to the release that is asked for and to nothing else."""
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], env=_ENV, capture_output=True, text=True, check=False
    )


def _where(arch: str, python: str) -> list[str]:
    platforms = [f"--platform={platform.format(arch)}" for platform in _PLATFORMS]
    return ["--no-deps", "--only-binary=:all:", f"--python-version={python}", *platforms]


def metadata(release: str, arch: str, python: str, package: str = "torch") -> dict[str, Any] | None:
    """Return the metadata of a release's wheel as pip reports it; None where there is no such wheel."""
    with tempfile.TemporaryDirectory() as target:
        done = pip(
            "install", "--quiet", "--dry-run", "--report=-", f"--target={target}", *_where(arch, python),
            f"{package}=={release}",
        )  # fmt: skip
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout)["install"][0]["metadata"]
    return found


def pins(found: dict[str, Any]) -> dict[str, str]:
    """Return the versions that a wheel's metadata asks for."""
    lines = found.get("requires_dist", [])
    result = {}
    for name, pattern in {**_PINS, "triton": r"(?:pytorch-)?triton"}.items():
        match = next((m for line in lines if (m := re.match(rf"{pattern}\s*\(?(==|~=)\s*([0-9.]+)", line))), None)
        result[name] = match[2] if match else ""
    return result


def cuda_toolkit(found: dict[str, Any]) -> str:
    """Return the version of ``cuda-toolkit``, through which builds for CUDA 13 pin all of its parts."""
    lines = found.get("requires_dist", [])
    match = next((m for line in lines if (m := re.match(r"cuda-toolkit(?:\[[^\]]*\])?\s*\(?==([0-9.]+)", line))), None)
    return match[1] if match else ""


def targets(release: str, arch: str, python: str) -> list[str]:
    """Return the GPU targets that are compiled into a release, read from the strings of its libraries."""
    with tempfile.TemporaryDirectory() as folder:
        done = pip(
            "download", "--quiet", f"--dest={folder}", "--no-cache-dir", *_where(arch, python), f"torch=={release}"
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for name in ("torch/lib/libtorch_python.so", "torch/lib/libtorch_cuda.so"):
                if name in wheel.namelist():
                    match = _FLAGS.search(wheel.read(name))
                    if match:
                        return match[0].decode().split()
    return []


def main() -> None:
    """Print one JSON object a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--arch", default="x86_64", choices=["x86_64", "aarch64"])
    parser.add_argument("--targets", action="store_true")
    arguments = parser.parse_args()
    for release in arguments.releases:
        by_python = {f"3.{minor}": metadata(release, arguments.arch, f"3.{minor}") for minor in range(8, 16)}
        pythons = [python for python, found in by_python.items() if found]
        row: dict[str, Any] = {"torch": release, "arch": arguments.arch, "pythons": pythons}
        if pythons:
            row.update(pins(by_python[pythons[-1]] or {}))
            if arguments.targets:
                row["targets"] = targets(release, arguments.arch, pythons[-1])
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
