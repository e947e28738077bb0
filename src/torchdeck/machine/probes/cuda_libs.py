"""The CUDA libraries that the loader would take for an installed torch, found from files, without loading any.

The order of glibc's loader (ld.so(8)), per name and once a process, since a name that is loaded is not looked for
again: LD_PRELOAD; then RPATH of the library that asks and of those that asked for it, unless the one that asks has a
RUNPATH; then LD_LIBRARY_PATH; then RUNPATH of the one that asks alone; then ld.so.cache; then the system's folders.

What that means for torch (read with readelf from the wheels of 2.6.0+cu124): torch's own libraries carry an RPATH
that names the folders of the nvidia-* wheels from ``$ORIGIN`` on, so LD_LIBRARY_PATH cannot replace what they ask for
themselves (libcudart, libcublas, libcudnn.so.9, libnccl). NVIDIA's libraries carry a RUNPATH: what *they* ask for
(libnvJitLink for libcusparse, the parts ``libcudnn_*.so.9`` that libcudnn opens while it runs) is taken from
LD_LIBRARY_PATH first. torch 2.6 therefore loads libnvrtc and libnvJitLink of its wheels before anything asks; nobody
does so for the parts of cuDNN.

It does not know: folders for special processors (glibc-hwcaps), libraries that a program opens by a path, an RPATH of
the Python program itself, what a running process has really loaded.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from torchdeck import places, runner
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.python import Library
from torchdeck.machine.probes.elf import Dynamic, read_dynamic

# The libraries of CUDA and of what belongs to it; libcuda is the driver's, and comes from nowhere else.
_CUDA = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|cusparseLt|nccl|nvrtc|nvJitLink"
    r"|nvToolsExt|nvshmem)(?:[_-][\w-]+)?\.so[.\d]*"
)
# Which of torch's libraries are loaded: the first two at import, the others when they are first used.
_ROOTS = ("libtorch_global_deps.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so")
_MAX_LIBRARIES = 200
_LINE = re.compile(r"\s*(\S{1,300}) \(([^()]{0,200})\) => (/.{0,4000})")
_LDCONFIG = ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig")
_TIMEOUT_S = 2.0
_SYSTEM = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
# torch's own code: `_preload_cuda_deps("nvjitlink", …)` loads one, `_preload_cuda_deps()` all of its wheels'.
_PRELOADS = re.compile(r"_preload_cuda_(?:deps|lib)\(\s*(?:\"(\w{1,40})\"|\))")
_FOLDERS = {"nvjitlink": "libnvJitLink.so", "cuda_nvrtc": "libnvrtc.so"}


class Places(NamedTuple):
    """Where the loader looks besides the libraries' own words.

    Args:
        preload: Files of LD_PRELOAD.
        folders: Folders of LD_LIBRARY_PATH.
        cache: The loader's cache, name -> paths.
    """

    preload: tuple[str, ...]
    folders: tuple[str, ...]
    cache: Mapping[str, tuple[str, ...]]


def parse_ldconfig(text: str) -> dict[str, tuple[str, ...]]:
    """Return the paths for each name in the output of ``ldconfig -p``, in its order; 32-bit libraries are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.split("\n"):
        match = _LINE.fullmatch(line.rstrip())
        # "libc6" alone is a 32-bit library on x86_64, and "libc6,x32" one of the third ABI.
        if match is None or match[2].split(",")[0] != "libc6" or "64" not in match[2].split(", ")[0].partition(",")[2]:
            continue
        found[match[1]] = (*found.get(match[1], ()), match[3])
    return found


def loader_cache() -> dict[str, tuple[str, ...]] | Missing:
    """Return what ``ldconfig -p`` prints of the loader's cache."""
    said = ""
    for program in _LDCONFIG:
        done = runner.run([program, "-p"], timeout_s=_TIMEOUT_S, env={**os.environ, "LC_ALL": "C"})
        if done.ok:
            return parse_ldconfig(done.stdout)
        said = said or f"{program} -p ended with {done.rc}"
    return Missing(reason=f"the loader's cache cannot be read: {said}")


def loader_places(environment: Mapping[str, str]) -> Places | Missing:
    """Return where the loader of a process with this environment looks."""
    cache = loader_cache()
    if isinstance(cache, Missing):
        return cache
    return Places(
        preload=tuple(re.split(r"[\s:]+", environment.get("LD_PRELOAD", ""))),
        # An empty part means the folder that one is in, which differs from start to start.
        folders=tuple(part for part in re.split("[:;]", environment.get("LD_LIBRARY_PATH", "")) if part),
        cache=cache,
    )


def find_libraries(site: Path, places_: Places, preloads: tuple[str, ...]) -> tuple[Library, ...]:
    """Return the CUDA libraries that torch in a folder of packages would load.

    Args:
        site: The folder that holds ``torch``.
        places_: Where else the loader looks.
        preloads: The folders of wheels whose libraries torch loads itself beforehand; ``*`` for all.
    """
    return _Walk(site, places_, preloads).go()


def preloads_of(source: str) -> tuple[str, ...]:
    """Return from the text of ``torch/__init__.py`` which libraries it loads itself; ``*`` for all of the wheels'."""
    names = [match[1] or "*" for match in _PRELOADS.finditer(source)]
    return tuple(dict.fromkeys(names))


class _Asking(NamedTuple):
    """A library that asks for others: its file, what it says, and the folders that are inherited from who asked."""

    file: str
    dynamic: Dynamic
    inherited: tuple[str, ...]


class _Walk:
    """Goes from torch's own libraries to all that they need, breadth first, as the loader does."""

    def __init__(self, site: Path, places_: Places, preloads: tuple[str, ...]) -> None:
        self.lib = site / "torch" / "lib"
        self.places = places_
        self.preloads = preloads
        self.own = _own_copies(site)
        self.found: dict[str, Library] = {}
        self.queue: deque[_Asking] = deque()
        self.seen: set[str] = set()

    def go(self) -> tuple[Library, ...]:
        for root in _ROOTS:
            self._enter(str(self.lib / root), ())
            self._drain()
        self._parts_of_cudnn()
        return tuple(self.found[name] for name in sorted(self.found))

    def _enter(self, file: str, inherited: tuple[str, ...]) -> None:
        if file in self.seen or len(self.seen) >= _MAX_LIBRARIES:
            return
        self.seen.add(file)
        dynamic = read_dynamic(Path(file))
        if dynamic is not None:
            folder = os.path.dirname(file)  # noqa: PTH120 - some hundred paths: pathlib costs five times as much
            own = tuple(_expand(part, folder) for part in (() if dynamic.runpath else dynamic.rpath))
            self.queue.append(_Asking(file, dynamic, (*own, *inherited)))

    def _drain(self) -> None:
        while self.queue:
            asking = self.queue.popleft()
            for soname in asking.dynamic.needed:
                if _CUDA.fullmatch(soname):
                    self._load(soname, asking)
                elif soname.startswith(("libtorch", "libc10")):
                    self._enter(str(self.lib / soname), asking.inherited)

    def _load(self, soname: str, asking: _Asking) -> None:
        if soname in self.found:
            return
        own = self.own.get(soname)
        path, via = self._look(soname, asking, own)
        if path is not None and own is not None and _same(path, own):
            path = own
        self.found[soname] = Library(
            soname=soname,
            needed_by=os.path.basename(asking.file),  # noqa: PTH119
            path=None if path is None else places.fold_home(path),
            via=via,
            own=None if own is None else places.fold_home(own),
            version=None if path is None else _version_of(path, soname),
        )
        if path is not None:
            self._enter(path, asking.inherited)

    def _look(self, soname: str, asking: _Asking, own: str | None) -> tuple[str | None, str]:
        folder = os.path.dirname(asking.file)  # noqa: PTH120
        runpath = tuple(_expand(part, folder) for part in asking.dynamic.runpath)
        for file in self.places.preload:
            if os.path.basename(file) == soname and os.path.isfile(file):  # noqa: PTH113, PTH119
                return file, "LD_PRELOAD"
        if own is not None and self._is_preloaded(soname):
            return own, "torch"
        ways = (
            ("rpath", () if runpath else asking.inherited),
            ("LD_LIBRARY_PATH", self.places.folders),
            ("runpath", runpath),
        )
        for via, folders in ways:
            for place in folders:
                if os.path.isfile(f"{place}/{soname}"):  # noqa: PTH113
                    return f"{place}/{soname}", via
        for path in (*self.places.cache.get(soname, ()), *(f"{place}/{soname}" for place in _SYSTEM)):
            if os.path.isfile(path):  # noqa: PTH113
                return path, "ld.so.cache"
        return None, ""

    def _is_preloaded(self, soname: str) -> bool:
        if "*" in self.preloads:
            return not soname.startswith("libcudnn_")
        return any(soname.startswith(_FOLDERS.get(name, "\0")) for name in self.preloads)

    def _parts_of_cudnn(self) -> None:
        """Resolve the parts that cuDNN opens by name while it runs, as a library with its RUNPATH would ask."""
        whole = next((name for name in self.found if name.startswith("libcudnn.so")), None)
        if whole is None or self.found[whole].path is None:
            return
        file = next(file for file in self.seen if os.path.basename(file) == whole)  # noqa: PTH119
        dynamic = read_dynamic(Path(file))
        if dynamic is None:
            return
        suffix = whole.removeprefix("libcudnn")
        parts = sorted(name for name in self.own if name.startswith("libcudnn_") and name.endswith(suffix))
        for part in parts:
            self._load(part, _Asking(file, dynamic, ()))


def _own_copies(site: Path) -> dict[str, str]:
    """Return name -> path of the CUDA libraries beneath a folder of packages: in torch itself, and in the wheels."""
    folders = [f"{site}/torch/lib", f"{site}/cusparselt/lib", *_subfolders(f"{site}/nvidia")]
    found: dict[str, str] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            if _CUDA.fullmatch(name):
                found.setdefault(name, f"{folder}/{name}")
    return found


def _subfolders(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}/lib" for name in sorted(os.listdir(folder))]  # noqa: PTH208
    except OSError:
        return []


def _expand(part: str, origin: str) -> str:
    return part.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def _version_of(path: str, soname: str) -> str | None:
    """Return the version in the name of the file behind a library's links."""
    stem = soname.partition(".so")[0]
    match = re.fullmatch(re.escape(stem) + r"\.so\.(\d+(?:\.\d+)+)", os.path.basename(os.path.realpath(path)))  # noqa: PTH119
    return match[1] if match else None
