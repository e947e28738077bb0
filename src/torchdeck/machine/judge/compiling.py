"""What ``torch.compile`` and builds of extensions need: compilers, headers, libcuda, a toolkit, a fitting Python."""

from __future__ import annotations

from torchdeck.machine.catalogue import REFERENCE, releases
from torchdeck.machine.facts import Driver, Facts, Missing, System, Toolchain
from torchdeck.machine.facts.nvidia import NOT_GATHERED
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding
from torchdeck.machine.stack.parse import version_tuple

_PACKAGES = {
    "debian": ("sudo apt-get install g++", "sudo apt-get install python{minor}-dev"),
    "ubuntu": ("sudo apt-get install g++", "sudo apt-get install python{minor}-dev"),
    "fedora": ("sudo dnf install gcc-c++", "sudo dnf install python{minor}-devel"),
    "rhel": ("sudo dnf install gcc-c++", "sudo dnf install python{minor}-devel"),
    "alpine": ("sudo apk add g++", "sudo apk add python3-dev"),
    "arch": ("sudo pacman -S gcc", "sudo pacman -S python"),
}
_ANY = ("install g++ with the distribution's package manager", "install the headers of Python {minor}")


def _packages(system: System | Missing) -> tuple[str, str]:
    name = "" if isinstance(system, Missing) else str(system.distribution)
    return _PACKAGES.get(name, _ANY)


def judge_compilers(facts: Facts) -> list[Finding]:
    """Find a missing compiler, before the first compiled step does."""
    tools = facts.toolchain
    if isinstance(tools, Missing):
        return [unknown("compile-no-c-compiler", "whether torch.compile finds a compiler", tools)]
    missing = [name for name, found in (("C", tools.c), ("C++", tools.cxx)) if found is None]
    if not missing:
        return []
    return [
        Finding(
            rule="compile-no-c-compiler",
            severity="warning",
            title=f"no {' and no '.join(missing)} compiler: torch.compile will fail",
            cause="Inductor compiles its CPU code with a C++ compiler, Triton its launchers with a C compiler, on the "
            "machine that trains.",
            evidence=("looked for CC, gcc, clang, cc and CXX, g++, clang++, c++ on PATH",),
            needs="gcc and g++, or clang",
            mend=(_packages(facts.system)[0],),
        )
    ]


def judge_headers(facts: Facts) -> list[Finding]:
    """Find a Python without its headers."""
    python = facts.python
    headers = python if isinstance(python, Missing) else python.headers
    if isinstance(headers, Missing):
        return [unknown("compile-no-python-headers", "whether Python's headers are there", headers)]
    if headers is not None or isinstance(python, Missing):
        return []
    minor = ".".join(python.version.split(".")[:2])
    return [
        Finding(
            rule="compile-no-python-headers",
            severity="warning",
            title=f"Python {python.version} has no Python.h: torch.compile will fail",
            cause="What Inductor and Triton compile at run time includes Python's own headers.",
            evidence=(f"{python.path} says where they would be, and they are not",),
            needs=f"the headers of Python {minor}",
            mend=(_packages(facts.system)[1].format(minor=minor), "torchdeck up --python 3.12  (one of uv's has them)"),
        )
    ]


def judge_python(facts: Facts) -> list[Finding]:
    """Say where the reference release has no wheels for this Python."""
    python = facts.python
    if isinstance(python, Missing):
        return [unknown("python-unsupported", "which Python this is", python)]
    minor = version_tuple(".".join(python.version.split(".")[:2]))
    reference = next(release for release in releases() if release.torch == REFERENCE)
    first, last = (version_tuple(text) for text in reference.pythons)
    if first <= minor <= last:
        return []
    fitting = [
        release.torch
        for release in releases()
        if version_tuple(release.pythons[0]) <= minor <= version_tuple(release.pythons[1])
    ]
    choices = f"; releases that have: {fitting[0]} to {fitting[-1]}" if fitting else "; no listed release has"
    return [
        Finding(
            rule="python-unsupported",
            severity="warning",
            title=f"torch {REFERENCE} has no wheels for Python {python.version}",
            cause=f"It has them for {reference.pythons[0]} to {reference.pythons[1]}{choices}.",
            evidence=(f"read from {python.path}",),
            needs=f"a Python from {reference.pythons[0]} to {reference.pythons[1]} for the reference stack",
            mend=("torchdeck up --python 3.12", "torchdeck stacks"),
        )
    ]


def judge_libcuda_link(facts: Facts) -> list[Finding]:
    """Find a driver whose libcuda Triton cannot find or link, where a CUDA build is used or about to be."""
    tools, nvidia = facts.toolchain, facts.nvidia
    if isinstance(tools, Missing) or isinstance(nvidia, Missing) or not isinstance(nvidia.driver, Driver):
        return []
    if isinstance(nvidia.gpus, Missing) or not nvidia.gpus or tools.libcuda == NOT_GATHERED:
        return []
    if not isinstance(nvidia.host, Missing) and nvidia.host.libcuda is None:
        return []  # no program finds it at all, which the rules on the driver say
    if isinstance(tools.libcuda, Missing):
        return [unknown("libcuda-not-on-path", "whether Triton finds libcuda", tools.libcuda)]
    if tools.libcuda is None:
        return [_libcuda_not_found(tools)]
    if isinstance(tools.libcuda_for_linking, Missing) and tools.libcuda_for_linking != NOT_GATHERED:
        return [unknown("libcuda-not-on-path", "whether Triton can link libcuda", tools.libcuda_for_linking)]
    if tools.libcuda_for_linking is False:
        return [_libcuda_not_linkable(tools.libcuda)]
    return []


def _libcuda_not_found(tools: Toolchain) -> Finding:
    folders = tools.libcuda_elsewhere
    found = f"it lies in {' and '.join(folders)}" if folders else "it lies in none of the usual places either"
    folder = folders[0] if folders else "/folder/of/libcuda"
    return Finding(
        rule="libcuda-not-on-path",
        severity="warning",
        title="the driver is loaded, but Triton will not find its libcuda.so.1: torch.compile will fail on the GPU",
        cause="Triton looks in the loader's cache, then in LD_LIBRARY_PATH, then gives up.",
        evidence=("neither ldconfig -p nor LD_LIBRARY_PATH has a libcuda.so.1", found),
        needs="libcuda.so.1 in the loader's cache",
        mend=(
            f"echo {folder} | sudo tee /etc/ld.so.conf.d/nvidia-driver.conf && sudo ldconfig",
            f"export TRITON_LIBCUDA_PATH={folder}",
        )
        if folders
        else ("sudo ldconfig", "reinstall the NVIDIA driver with its CUDA libraries (package libcuda1 on Debian)"),
    )


def _libcuda_not_linkable(library: str) -> Finding:
    return Finding(
        rule="libcuda-not-on-path",
        severity="warning",
        title=f"{library} has no libcuda.so beside it: torch.compile may fail on the GPU",
        cause="Triton's launchers are linked with -lcuda, which asks for the name without a number.",
        evidence=(f"{library} is there, libcuda.so is neither beside it nor where the linker looks",),
        needs="a link libcuda.so to libcuda.so.1",
        mend=(f"sudo ln -s libcuda.so.1 {library.rpartition('/')[0]}/libcuda.so",),
    )


def judge_toolkit(facts: Facts) -> list[Finding]:
    """Hold nvcc against the installed torch; both matter only to who builds CUDA extensions."""
    tools, python = facts.toolchain, facts.python
    if isinstance(tools, Missing) or isinstance(python, Missing):
        return []
    build = python.torch
    if build is None or isinstance(build, Missing) or build.cuda is None or not _has_gpu(facts):
        return []
    nvcc = tools.nvcc
    if nvcc is None:
        # Without CUDA_HOME nobody says that there should be one, and torch itself needs none.
        return [_no_toolkit(tools, build.cuda)] if tools.cuda_home else []
    if isinstance(nvcc, Missing):
        return []
    numbers = nvcc.numbers
    if isinstance(numbers, Missing):
        return [unknown("nvcc-torch-cuda-mismatch", f"of which CUDA {nvcc.path} is", numbers)]
    if build.cuda.split(".")[0] == str(numbers[0]):
        return []
    shown = ".".join(map(str, numbers[:2]))
    return [
        Finding(
            rule="nvcc-torch-cuda-mismatch",
            severity="warning",
            title=f"nvcc is of CUDA {shown}, torch {build.version} of {build.cuda}: CUDA extensions will not build",
            cause="torch refuses to build an extension with a toolkit of another major version. torch itself and "
            "torch.compile do not use it.",
            evidence=(f"{nvcc.path} says: {nvcc.version}",),
            needs=f"an nvcc of CUDA {build.cuda.split('.')[0]}",
            mend=(f"export CUDA_HOME=/usr/local/cuda-{build.cuda}  (once that toolkit is installed)",),
        )
    ]


def _has_gpu(facts: Facts) -> bool:
    nvidia = facts.nvidia
    return not isinstance(nvidia, Missing) and not isinstance(nvidia.gpus, Missing) and bool(nvidia.gpus)


def _no_toolkit(tools: Toolchain, cuda: str) -> Finding:
    where = (
        f"CUDA_HOME is {tools.cuda_home}, which has no bin/nvcc"
        if tools.cuda_home
        else "looked on PATH and in /usr/local/cuda"
    )
    return Finding(
        rule="cuda-toolkit-missing",
        severity="info",
        title="no CUDA toolkit (nvcc): needed only to build CUDA extensions such as flash-attn from source",
        cause="torch brings its libraries, and torch.compile its own assembler.",
        evidence=(where,),
        needs=f"a toolkit of CUDA {cuda}, if you build any",
        mend=(f"install the CUDA toolkit {cuda}, then: export CUDA_HOME=/usr/local/cuda-{cuda}",),
    )
