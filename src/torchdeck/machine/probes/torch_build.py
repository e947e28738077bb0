"""The torch in a Python's folders of packages, and what has to fit it: from names of folders and a few small files.

Names and versions of packages come from the names of their ``*.dist-info`` (or ``*.egg-info``) folders; only the
metadata of torch, of ``cuda-toolkit``, torchvision and torchaudio is opened, and of them only the head. It does not
know what is added to the search path while a program runs (PYTHONPATH, ``.pth`` files, editable installations).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torchdeck import places
from torchdeck.machine.facts import Missing, TorchBuild
from torchdeck.machine.facts.python import Library, Package, Wheel
from torchdeck.machine.probes.cuda_libs import find_libraries, loader_places, preloads_of
from torchdeck.machine.probes.elf import read_constants

_MAX_TEXT = 2_000_000
_MAX_METADATA = 400_000
_TARGETS = re.compile(rb"(?:sm|compute)_\d{2,3}[af]?(?: (?:sm|compute)_\d{2,3}[af]?)+")
_VERSION = re.compile(r"^__version__(?:\s*:[^=\n]{1,40})?\s*=\s*['\"]([^'\"\n]{1,100})['\"]", re.MULTILINE)
_CUDA = re.compile(r"^cuda(?:\s*:[^=\n]{1,40})?\s*=\s*['\"]([^'\"\n]{1,30})['\"]", re.MULTILINE)
_HIP = re.compile(r"^hip(?:\s*:[^=\n]{1,40})?\s*=\s*['\"]([^'\"\n]{1,60})['\"]", re.MULTILINE)
_REFUSES = re.compile(
    r"sys\.version_info >= \((\d), ?(\d{1,2})\):\s{1,40}raise RuntimeError\(\s{0,40}f?\"[^\"\n]{0,80}"
    r"(?:torch\.compile|Dynamo)"
)
_COMPANIONS = ("torchvision", "torchaudio", "triton", "pytorch-triton", "numpy", "mkl")
_WHEELS = re.compile(r"(?:nvidia-(?:cu|nv|nccl)[a-z0-9-]+|cuda-toolkit|triton|pytorch-triton)")
# Packages of NVIDIA that are no libraries of CUDA for torch.
_OTHERS = re.compile(
    r"nvidia-(?:ml-py.*|cuda-(?:nvcc|cccl|crt|opencl|sanitizer.*|profiler.*)|cudnn-frontend)(?:-cu\d+)?"
)
_CONDA = re.compile(r"(pytorch|torchvision|torchaudio|mkl|numpy)-(\d[^-]{0,40})-([^-]{1,100})\.json")


class Installed(NamedTuple):
    """An installed package: its normalized name, its version, and the folder of its metadata."""

    name: str
    version: str
    info: str


def gather_torch_build(about: Mapping[str, Any]) -> TorchBuild | Missing | None:
    """Return the torch that a Python would import; None if it has none.

    Args:
        about: What ``about_python`` says of it.
    """
    folders = [Path(folder) for folder in about["folders"]]
    for site in folders:
        file = site / "torch" / "version.py"
        try:
            text = _read(file)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return Missing(reason=f"{places.fold_home(str(file))} cannot be read: {error.strerror}")
        return _build(text, site, folders, about)
    return None


def _build(text: str, site: Path, folders: Sequence[Path], about: Mapping[str, Any]) -> TorchBuild | Missing:
    version = _VERSION.search(text)
    if version is None:
        return Missing(reason="torch's version.py does not say a version")
    cuda, hip = _CUDA.search(text), _HIP.search(text)
    installed = [package for package in list_installed(folders) if _matters(package.name) and _is_there(package)]
    source = _read_or_missing(site / "torch" / "__init__.py")
    return TorchBuild(
        version=version[1],
        cuda=cuda[1] if cuda else None,
        hip=hip[1] if hip else None,
        targets=_targets(site) if cuda else None,
        wheels=_wheels(version[1], site, installed, about),
        companions=_companions(site, installed, Path(about["prefix"])),
        libraries=_libraries(site, source) if cuda else None,
        compile_below=_compile_below(site, source),
    )


def list_installed(folders: Sequence[Path]) -> tuple[Installed, ...]:
    """Return the packages in folders, those of the first folder first; a folder that cannot be listed has none."""
    found = []
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths
        except OSError:
            continue
        for name in names:
            parsed = parse_info_name(name)
            if parsed is not None:
                found.append(Installed(*parsed, f"{folder}/{name}"))
    return tuple(found)


def parse_info_name(name: str) -> tuple[str, str] | None:
    """Return normalized name and version from ``nvidia_nccl_cu12-2.21.5.dist-info``; None for any other name."""
    stem, dot, kind = name.rpartition(".")
    if kind not in ("dist-info", "egg-info") or not dot:
        return None
    package, _, version = stem.partition("-")
    if kind == "egg-info":
        version = re.sub(r"-py\d[\d.]*$", "", version)
    return (_normal(package), version) if package and version else None


def parse_metadata(text: str) -> tuple[str, ...]:
    """Return the requirement lines in the head of a metadata file."""
    head = re.split(r"\r?\n[ \t]*\r?\n", text, maxsplit=1)[0]
    lines = (line.partition(":") for line in head.splitlines())
    return tuple(value.strip() for key, _, value in lines if key.lower() == "requires-dist")


def parse_targets(data: bytes) -> tuple[str, ...]:
    """Return the GPU targets in a library's constants: the longest list of them, empty if there is none."""
    longest: list[str] = max((match[0].decode().split() for match in _TARGETS.finditer(data)), key=len, default=[])
    return tuple(longest)


def _targets(site: Path) -> tuple[str, ...] | Missing:
    data = read_constants(site / "torch" / "lib" / "libtorch_python.so")
    if data is None:
        return Missing(reason="libtorch_python.so is absent, or cannot be read")
    return parse_targets(data) or Missing(reason="libtorch_python.so holds no list of GPU targets")


def _compile_below(site: Path, source: str | Missing) -> str | Missing | None:
    texts = [source, _read_or_missing(site / "torch" / "_dynamo" / "eval_frame.py")]
    limits = [
        (int(match[1]), int(match[2]))
        for text in texts
        if not isinstance(text, Missing)
        for match in _REFUSES.finditer(text)
    ]
    if limits:
        return "{}.{}".format(*min(limits))
    return source if isinstance(source, Missing) else None


def _libraries(site: Path, source: str | Missing) -> tuple[Library, ...] | Missing:
    where = loader_places(os.environ)
    if isinstance(where, Missing):
        return where
    return find_libraries(site, where, () if isinstance(source, Missing) else preloads_of(source))


def _companions(site: Path, installed: Sequence[Installed], prefix: Path) -> tuple[Package, ...]:
    conda = _conda(prefix)
    found: dict[str, Package] = {}
    for package in installed:
        if package.name not in _COMPANIONS or package.name in found:
            continue
        found[package.name] = Package(
            name=package.name,
            version=_full_version(package) if package.name in ("torchvision", "torchaudio") else package.version,
            wants_torch=_wants_torch(package) if package.name in ("torchvision", "torchaudio") else None,
            build=conda.get(package.name, ("", None))[1],
        )
    # MKL in conda is no Python package, and torch is called pytorch there.
    for name, shown in (("mkl", "mkl"), ("pytorch", "torch")):
        if name in conda:
            version, build = conda[name]
            found[shown] = Package(name=shown, version=version, build=build)
    return tuple(found[name] for name in sorted(found))


def _conda(prefix: Path) -> dict[str, tuple[str, str | None]]:
    """Return name -> version and build of what conda says it installed, from the names of its files."""
    try:
        names = os.listdir(prefix / "conda-meta")  # noqa: PTH208
    except OSError:
        return {}
    matches = (_CONDA.fullmatch(name) for name in names)
    return {match[1]: (match[2], match[3]) for match in matches if match}


def _full_version(package: Installed) -> str:
    """Return the version with its build, which the name of the folder lacks in PyPI's wheels."""
    text = _read_or_missing(Path(package.info).parent / package.name / "version.py")
    match = None if isinstance(text, Missing) else _VERSION.search(text)
    return match[1] if match else package.version


def _wants_torch(package: Installed) -> str | None:
    for line in _requirements(package):
        match = re.fullmatch(r"torch\s*\(?\s*([^;()]{0,100}?)\s*\)?\s*(?:;.*)?", line)
        if match:
            return match[1].strip() or None
    return None


def _wheels(
    version: str, site: Path, installed: Sequence[Installed], about: Mapping[str, Any]
) -> tuple[Wheel, ...] | Missing:
    own = [package for package in installed if package.name == "torch" and Path(package.info).parent == site]
    if not own:
        return Missing(reason="torch has no metadata beside it")
    release = version.partition("+")[0]
    torch = next((package for package in own if package.version.partition("+")[0] == release), own[-1])
    wanted = _wanted(torch, installed, str(about["version"]))
    if isinstance(wanted, Missing):
        return wanted
    there: dict[str, list[Installed]] = {}
    for package in installed:
        known = there.setdefault(package.name, [])
        # A copy in a later folder is hidden by the first one; two in one folder are remains of each other.
        if not known or Path(known[0].info).parent == Path(package.info).parent:
            known.append(package)
    names = sorted(name for name in {*wanted, *there} if _is_wheel(name))
    return tuple(
        Wheel(name=name, wanted=wanted.get(name), found=tuple(package.version for package in there.get(name, ())))
        for name in names
    )


def _wanted(torch: Installed, installed: Sequence[Installed], python: str) -> dict[str, str] | Missing:
    """Return name -> versions of the libraries that torch asks for, those included that it asks for through others."""
    from packaging.requirements import InvalidRequirement, Requirement

    base = {"python_version": ".".join(python.split(".")[:2]), "python_full_version": python}
    found: dict[str, str] = {}

    def ask(lines: Sequence[str], extras: frozenset[str]) -> None:
        for line in lines:
            name = re.match(r"[A-Za-z0-9._-]{1,100}", line)
            if name is None or not _is_wheel(_normal(name[0])):
                continue
            try:
                requirement = Requirement(line)
                marker = requirement.marker
                applies = marker is None or any(marker.evaluate({**base, "extra": extra}) for extra in extras or {""})
            except (InvalidRequirement, ValueError, KeyError):
                continue
            key = _normal(requirement.name)
            if not applies or key in found:
                continue
            found[key] = str(requirement.specifier)
            toolkit = _first_or_none(installed, key) if key == "cuda-toolkit" else None
            if toolkit is not None:
                ask(_requirements(toolkit), frozenset(requirement.extras))

    text = _metadata(torch)
    if isinstance(text, Missing):
        return text
    ask(parse_metadata(text), frozenset())
    return found


def _metadata(package: Installed) -> str | Missing:
    """Return the head of a package's metadata; one without a name in it was damaged."""
    if package.info.endswith(".egg-info"):
        return ""
    path = Path(package.info) / "METADATA"
    text = _read_or_missing(path, _MAX_METADATA)
    if isinstance(text, Missing) or re.search(r"^Name:", text, re.MULTILINE):
        return text
    return Missing(reason=f"{places.fold_home(str(path))} is damaged: it names no package")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_wheel(name: str) -> bool:
    return bool(_WHEELS.fullmatch(name)) and not _OTHERS.fullmatch(name)


def _matters(name: str) -> bool:
    return name == "torch" or name in _COMPANIONS or _is_wheel(name)


def _first_or_none(installed: Sequence[Installed], name: str) -> Installed | None:
    return next((package for package in installed if package.name == name), None)


def _is_there(package: Installed) -> bool:
    if package.info.endswith(".egg-info"):
        return True
    return os.path.isfile(f"{package.info}/METADATA")  # noqa: PTH113 - asked for each of some thirty packages


def _requirements(package: Installed) -> tuple[str, ...]:
    text = _metadata(package)
    return () if isinstance(text, Missing) else parse_metadata(text)


def _read_or_missing(path: Path, limit: int = _MAX_TEXT) -> str | Missing:
    try:
        return _read(path, limit)
    except OSError as error:
        return Missing(reason=f"{places.fold_home(str(path))} cannot be read: {error.strerror}")


def _read(path: Path, limit: int = _MAX_TEXT) -> str:
    """Return the beginning of a text file; what is no file of its own, such as a pipe, is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit).decode("utf-8", "replace")
