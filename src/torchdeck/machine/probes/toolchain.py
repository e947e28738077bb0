"""The compilers, found as torch and Triton look for them, and the driver's library that Triton links against.

It runs each with ``--version``, side by side. It does not know whether a compiler works.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torchdeck import places, runner
from torchdeck.machine.facts import Compiler, Missing, Toolchain
from torchdeck.machine.facts.toolchain import version_numbers
from torchdeck.machine.probes.cuda_libs import loader_cache

_TIMEOUT_S = 3.0
_MAX_LINE = 300
_CUDA = Path("/usr/local/cuda")
_LIBCUDA = "libcuda.so.1"
# Where installers, container engines and WSL put the driver's libraries.
_DRIVER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/nvidia",
    "/run/opengl-driver/lib",
)
# Where the linker looks for -lcuda by itself.
_LINKER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)


def gather_toolchain() -> Toolchain:
    """Return the compilers and the driver's library that ``torch.compile`` and builds of extensions would use."""
    environment = os.environ
    cuda_home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH")
    with ThreadPoolExecutor(max_workers=5) as pool:
        c = pool.submit(_find, environment.get("CC"), "gcc", "clang", "cc")
        cxx = pool.submit(_find, environment.get("CXX"), "g++", "clang++", "c++")
        nvcc_path = _nvcc(cuda_home)
        nvcc = pool.submit(_find, nvcc_path)
        ptxas = pool.submit(_find, *_ptxas(environment, nvcc_path))
        libcuda = pool.submit(find_libcuda, environment)
        found, for_linking, elsewhere = libcuda.result()
        return Toolchain(
            c=c.result(),
            cxx=cxx.result(),
            nvcc=nvcc.result(),
            ptxas=ptxas.result(),
            cuda_home=places.fold_home(cuda_home) if cuda_home else None,
            libcuda=places.fold_home(found) if isinstance(found, str) else found,
            libcuda_for_linking=for_linking,
            libcuda_elsewhere=elsewhere,
        )


def _find(*names: str | None) -> Compiler | None:
    """Return the first of these programs that is there, and what it says of its version."""
    for name in names:
        path = shutil.which(name) if name else None
        if path:
            return Compiler(path=places.fold_home(path), version=_version(path))
    return None


def _version(path: str) -> str | Missing:
    done = runner.run([path, "--version"], timeout_s=_TIMEOUT_S)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if not done.ok or not lines:
        return Missing(reason=f"--version ended with {done.rc}")
    # NVIDIA's tools begin with their name and a copyright, and say "release 12.4, V12.4.131" further down.
    release = next((line for line in lines if "release" in line and version_numbers(line)), None)
    return (lines[0] if version_numbers(lines[0]) else release or lines[0])[:_MAX_LINE]


def _nvcc(cuda_home: str | None) -> str | None:
    """Return the nvcc that torch's builder of extensions would call; None if it would find none."""
    if cuda_home:
        return f"{cuda_home}/bin/nvcc"
    return shutil.which("nvcc") or str(_CUDA / "bin" / "nvcc")


def _ptxas(environment: Mapping[str, str], nvcc: str | None) -> tuple[str | None, ...]:
    beside = str(Path(nvcc).parent / "ptxas") if nvcc else None
    return environment.get("TRITON_PTXAS_PATH"), beside, "ptxas"


def find_libcuda(environment: Mapping[str, str]) -> tuple[str | Missing | None, bool | Missing | None, tuple[str, ...]]:
    """Return the driver's library where Triton looks, whether it can be linked, and where else it lies.

    Triton takes TRITON_LIBCUDA_PATH unseen, then every path that ``ldconfig -p`` names, and LD_LIBRARY_PATH only where
    that names none; its linker then asks for ``libcuda.so``.
    """
    own = environment.get("TRITON_LIBCUDA_PATH")
    cache = loader_cache()
    if own:
        candidates = [f"{own}/{_LIBCUDA}"]
    elif isinstance(cache, Missing):
        candidates = []
    else:
        candidates = list(cache.get(_LIBCUDA, ()))
    if not candidates and not own:
        candidates = [f"{part}/{_LIBCUDA}" for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    there = [path for path in candidates if Path(path).is_file()]
    if there:
        folders = (*(str(Path(path).parent) for path in there), *_LINKER_FOLDERS)
        return there[0], any(Path(folder, "libcuda.so").is_file() for folder in folders), ()
    if isinstance(cache, Missing) and not own:
        return cache, cache, ()
    return None, None, tuple(folder for folder in _DRIVER_FOLDERS if Path(folder, _LIBCUDA).is_file())
