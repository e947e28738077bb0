"""What ``torch.compile`` needs at run time: compilers, Python's headers, a Python that the release supports."""

from __future__ import annotations

from torchdeck.machine.catalogue import REFERENCE, releases
from torchdeck.machine.facts import Facts, Missing, System
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
