"""The CUDA libraries of an installed torch: are its wheels there, of one build, and are they what gets loaded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchdeck.machine.facts import Missing, PythonFacts, TorchBuild
from torchdeck.machine.facts.nvidia import NOT_GATHERED
from torchdeck.machine.facts.python import Library, Wheel
from torchdeck.machine.judge.repair import mend_packages, mend_without
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

# Wheels that put files of one name into one folder whatever CUDA they are for. Seen in the lists of their files for 12
# and for 13 (cuDNN only for 13, cuSPARSELt from 0.7 on); nvJitLink and its like lie apart for 13, in nvidia/cu13.
_SHARED = ("nvidia-cudnn", "nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem")
_SHOWN = 8


def satisfies(version: str, wanted: str) -> bool:
    """Whether an installed version is one that was asked for; an unreadable wish is taken as met."""
    if not wanted or wanted == f"=={version}":
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(wanted).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def judge_wheels(python: PythonFacts, build: TorchBuild) -> list[Finding]:
    """Find library wheels that are absent, of another version than torch asks for, or of another CUDA."""
    if build.cuda is None or build.wheels == NOT_GATHERED:
        return []
    if isinstance(build.wheels, Missing):
        return [unknown("cuda-wheels-missing", f"which libraries torch {build.version} asks for", build.wheels)]
    wheels = [wheel for wheel in build.wheels if not wheel.name.endswith("triton")]
    return [
        *_missing(python, build, [wheel for wheel in wheels if wheel.wanted is not None and not wheel.found]),
        *_drifted(python, build, wheels),
        *_foreign(python, build, wheels),
    ]


def _missing(python: PythonFacts, build: TorchBuild, missing: Sequence[Wheel]) -> list[Finding]:
    if not missing:
        return []
    names = [f"{wheel.name}{wheel.wanted}" for wheel in missing]
    return [
        Finding(
            rule="cuda-wheels-missing",
            severity="error",
            title=f"torch {build.version} lacks {_counted(len(missing), 'library package')}: {_listed(names)}",
            cause="It links to libraries that come in packages of their own. They were removed or never installed "
            "(--no-deps), and importing torch, or the first use of a GPU, fails.",
            evidence=(f"torch's own metadata asks for them, and {python.path} has no metadata of theirs",),
            needs="every package that torch's metadata asks for",
            mend=mend_packages(python, *names),
        )
    ]


def _drifted(python: PythonFacts, build: TorchBuild, wheels: Sequence[Wheel]) -> list[Finding]:
    other = [wheel for wheel in wheels if wheel.wanted and wheel.found and not satisfies(wheel.found[0], wheel.wanted)]
    double = [wheel for wheel in wheels if len(wheel.found) > 1]
    drifted = [wheel for wheel in wheels if wheel in other or wheel in double]
    if not drifted:
        return []
    shown = [f"{wheel.name} {' and '.join(wheel.found)}" for wheel in drifted]
    return [
        Finding(
            rule="cuda-wheels-mixed",
            severity="warning",
            title=f"libraries of another build lie under torch {build.version}: {_listed(shown)}",
            cause="torch was compiled and tested with exactly the versions that its metadata names. Another one can "
            "lack a symbol, or fail where two libraries check each other's version.",
            evidence=tuple(
                f"{wheel.name}: torch asks for {wheel.wanted or 'none'}, found {' and '.join(wheel.found)}"
                for wheel in drifted
            ),
            needs=", ".join(f"{wheel.name}{wheel.wanted or ''}" for wheel in drifted[:_SHOWN]),
            mend=mend_packages(python, *(f"{wheel.name}{wheel.wanted or ''}" for wheel in drifted), reinstall=True),
        )
    ]


def base_name(name: str) -> str:
    """Return the name of a library package without the CUDA that it is for."""
    return re.sub(r"-cu\d+$", "", name)


def _foreign(python: PythonFacts, build: TorchBuild, wheels: Sequence[Wheel]) -> list[Finding]:
    """Find packages of one library for two CUDA releases; those that share their files overwrite each other."""
    wanted = {base_name(wheel.name): wheel for wheel in wheels if wheel.wanted is not None}
    foreign = [wheel for wheel in wheels if wheel.wanted is None and wheel.found and base_name(wheel.name) in wanted]
    findings = []
    for rule, chosen in (
        ("nccl-lib-shadowed", [wheel for wheel in foreign if base_name(wheel.name) == "nvidia-nccl"]),
        ("cuda-wheels-mixed", [wheel for wheel in foreign if base_name(wheel.name) != "nvidia-nccl"]),
    ):
        if not chosen:
            continue
        clash = [wheel for wheel in chosen if base_name(wheel.name) in _SHARED]
        ours = [wanted[base_name(wheel.name)] for wheel in chosen]
        findings.append(
            Finding(
                rule=rule,
                severity="warning" if clash else "info",
                title=f"libraries for another CUDA lie beside those of torch {build.version}: "
                + _listed([f"{wheel.name} {wheel.found[0]}" for wheel in chosen]),
                cause="Both packages write the same files, and the one that was installed last wins."
                if clash
                else "They have files of their own; another framework may need them, torch does not.",
                evidence=tuple(
                    f"{wheel.name} {wheel.found[0]} beside {own.name}{own.wanted}"
                    for wheel, own in zip(chosen, ours, strict=True)
                ),
                needs="one package of each library, or an environment of its own for the other framework",
                mend=(
                    mend_without(python, *(wheel.name for wheel in chosen)),
                    *mend_packages(python, *(f"{own.name}{own.wanted}" for own in ours), reinstall=True),
                )
                if clash
                else (mend_without(python, *(wheel.name for wheel in chosen)),),
            )
        )
    return findings


def judge_libraries(python: PythonFacts, build: TorchBuild) -> list[Finding]:
    """Find libraries that LD_PRELOAD, LD_LIBRARY_PATH or the loader's cache puts before torch's own."""
    if build.libraries is None or build.libraries == NOT_GATHERED:
        return []
    if isinstance(build.libraries, Missing):
        return [unknown("cuda-lib-shadowed", "which CUDA libraries would be loaded", build.libraries)]
    taken = [
        library
        for library in build.libraries
        if library.own is not None and library.path is not None and library.path != library.own
    ]
    findings = []
    for rule, chosen in (
        ("cudnn-shadowed", [library for library in taken if library.soname.startswith("libcudnn")]),
        ("nccl-lib-shadowed", [library for library in taken if library.soname.startswith("libnccl")]),
        ("cuda-lib-shadowed", [library for library in taken if not library.soname.startswith(("libcudnn", "libnccl"))]),
    ):
        if chosen:
            findings.append(_shadowed(rule, python, build, chosen))
    return findings


def _shadowed(rule: str, python: PythonFacts, build: TorchBuild, taken: Sequence[Library]) -> Finding:
    ways = list(dict.fromkeys(library.via for library in taken))
    variables = [way for way in ways if way.startswith("LD_")]
    mend = [f"unset {variable}" for variable in variables]
    if variables:
        removed = " ".join(f"-u {variable}" for variable in variables)
        mend.append(f"env {removed} {python.path} train.py  (for one run)")
    else:
        mend.extend(mend_packages(python, f"torch=={build.version.split('+')[0]}", reinstall=True))
    return Finding(
        rule=rule,
        severity="warning",
        title=f"{_counted(len(taken), 'library', 'libraries')} of another installation would be loaded in place of "
        f"torch's own: {_listed([library.soname for library in taken])}",
        cause=f"{' and '.join(ways)} comes first for what asks for these. Parts of two versions then work together, "
        "which fails with a missing symbol, or with a version error when the library is first used.",
        evidence=tuple(
            f"{library.soname} for {library.needed_by}: {library.path}"
            + (f" ({library.version})" if library.version else "")
            + f", by {library.via}, instead of {library.own}"
            for library in taken[:_SHOWN]
        ),
        needs="torch's own copies first",
        mend=tuple(mend),
    )


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
