"""Folders of packages as the probes read them: a torch with wheels, metadata and libraries, made of small files."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PINS = {
    "nvidia-cudnn-cu12": "9.1.0.70",
    "nvidia-nccl-cu12": "2.21.5",
    "nvidia-nvjitlink-cu12": "12.4.127",
    "triton": "3.2.0",
}
INIT = """
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None: ...
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
    if sys.version_info >= (3, 14):
        raise RuntimeError("torch.compile is not supported on Python 3.14+")
"""


def elf(
    needed: Sequence[str] = (), rpath: str = "", runpath: str = "", constants: bytes = b"nothing of interest\0"
) -> bytes:
    """Return a 64-bit library with the parts that the loader's way and the GPU targets are read from."""
    strings = b"\0"
    tags: list[tuple[int, int]] = []
    for tag, text in [*((1, name) for name in needed), *([(15, rpath)] if rpath else []),
                      *([(29, runpath)] if runpath else [])]:  # fmt: skip
        tags.append((tag, len(strings)))
        strings += text.encode() + b"\0"
    base = 0x10000  # places in memory differ from those in the file
    num_dynamic = 16 * (len(tags) + 3)
    at_dynamic = 64 + 2 * 56
    at_strings = at_dynamic + num_dynamic
    at_constants = at_strings + len(strings)
    names = b"\0.rodata\0.shstrtab\0"
    at_names = at_constants + len(constants)
    at_sections = at_names + len(names)
    tags += [(5, base + at_strings), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, at_sections, 0, 64, 56, 2, 64, 3, 2
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, at_sections, at_sections, 4096)
    segment = struct.pack("<IIQQQQQQ", 2, 6, at_dynamic, base + at_dynamic, 0, num_dynamic, num_dynamic, 8)
    sections = b"\0" * 64
    for name, kind, place, size in ((1, 1, at_constants, len(constants)), (9, 3, at_names, len(names))):
        sections += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, place, size, 0, 0, 1, 0)
    return header + load + segment + dynamic + strings + constants + names + sections


def package(site: Path, name: str, version: str, requires: Sequence[str] = ()) -> Path:
    """Install the metadata of a package."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n\nA long description.\nRequires-Dist: nothing-of-this\n")
    return info


def torch(
    site: Path,
    version: str = "2.6.0+cu124",
    cuda: str | None = "12.4",
    pins: Mapping[str, str] = PINS,
    installed: Mapping[str, str] | None = None,
    requires: Sequence[str] | None = None,
) -> Path:
    """Install a torch with its wheels and libraries; return its folder of packages.

    Args:
        site: The folder of packages.
        version: torch's.
        cuda: None for a CPU build.
        pins: What it asks for.
        installed: What is there of it; all when None.
        requires: Its requirement lines; those of ``pins`` when None.
    """
    lib = site / "torch" / "lib"
    lib.mkdir(parents=True)
    shown = f"'{cuda}'" if cuda else "None"
    (site / "torch" / "version.py").write_text(
        f"__version__ = '{version}'\ncuda: Optional[str] = {shown}\nhip: Optional[str] = None\n"
    )
    (site / "torch" / "__init__.py").write_text(INIT)
    lines = requires if requires is not None else [
        f'{name} (=={wanted}) ; platform_system == "Linux"' for name, wanted in (pins.items() if cuda else ())
    ]  # fmt: skip
    package(site, "torch", version.partition("+")[0], ["filelock", *lines, "optree>=0.13.0 ; extra == 'optree'"])
    if cuda:
        libraries(site)
        for name, found in (pins if installed is None else installed).items():
            package(site, name, found)
    else:
        (lib / "libtorch_python.so").write_bytes(elf())
    return site


def libraries(site: Path) -> None:
    """Lay out libraries that ask for each other as those of 2.6.0 do."""
    lib = site / "torch" / "lib"
    origin = "$ORIGIN/../../nvidia"
    rpath = f"{origin}/cudnn/lib:{origin}/nccl/lib:{origin}/cusparse/lib:$ORIGIN"
    flags = b"\0sm_50 sm_90\0sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90\0"
    files: dict[Path, bytes] = {
        lib / "libtorch_python.so": elf(constants=flags),
        lib / "libtorch_cuda.so": elf(["libcusparse.so.12", "libcudnn.so.9", "libnccl.so.2", "libc.so.6"], rpath=rpath),
        site / "nvidia/cusparse/lib/libcusparse.so.12": elf(
            ["libnvJitLink.so.12"], runpath="$ORIGIN:$ORIGIN/../../nvjitlink/lib"
        ),
        site / "nvidia/nvjitlink/lib/libnvJitLink.so.12": elf(),
        site / "nvidia/cudnn/lib/libcudnn.so.9": elf(runpath="$ORIGIN"),
        site / "nvidia/cudnn/lib/libcudnn_graph.so.9": elf(),
        site / "nvidia/cudnn/lib/libcudnn_ops.so.9": elf(),
        site / "nvidia/nccl/lib/libnccl.so.2": elf(),
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def about(*folders: Path, version: str = "3.11.7", prefix: str = "/nonexistent") -> dict[str, Any]:
    """Return what a Python with these folders of packages says of itself."""
    return {"version": version, "prefix": prefix, "folders": [str(folder) for folder in folders]}
