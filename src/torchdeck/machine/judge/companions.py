"""The packages that have to fit an installed torch: torchvision, torchaudio, Triton, NumPy, MKL, and the Python."""

from __future__ import annotations

import re

from torchdeck.machine.catalogue import releases
from torchdeck.machine.facts import Missing, PythonFacts, TorchBuild
from torchdeck.machine.facts.nvidia import NOT_GATHERED
from torchdeck.machine.facts.python import Package, Wheel
from torchdeck.machine.judge.cuda_wheels import satisfies
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.repair import mend_deck, mend_packages, mend_torch, quoted, release_of
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding


def judge_companions(python: PythonFacts, build: TorchBuild, policy: Policy) -> list[Finding]:
    """Find packages beside torch that do not belong to it, and a Python that its compiler refuses."""
    findings = _python_too_new(python, build)
    if build.companions == NOT_GATHERED:
        return findings
    if isinstance(build.companions, Missing):
        return [*findings, unknown("torchvision-mismatch", "what is installed beside torch", build.companions)]
    packages = {package.name: package for package in build.companions}
    return [
        *findings,
        *_pair(python, build, packages.get("torchvision")),
        *_pair(python, build, packages.get("torchaudio")),
        *_numpy(python, build, packages.get("numpy"), policy),
        *_mkl(python, packages.get("torch"), packages.get("mkl"), policy),
        *_triton(python, build, packages),
    ]


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 6, 0) of ``2.6.0+cu124``, (2, 15) of ``2.15.dev3``."""
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*(?![\d])", version, re.ASCII)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _pair(python: PythonFacts, build: TorchBuild, package: Package | None) -> list[Finding]:
    """Hold torchvision or torchaudio against torch: by its own metadata, else by the catalogue, and by the CUDA."""
    if package is None:
        return []
    trouble = _other_release(build, package) or _other_build(build, package)
    if trouble is None:
        return []
    cause, evidence = trouble
    fitting = _of_catalogue(build, package.name)
    wish = f"{package.name}=={fitting}" if fitting else package.name
    deck = mend_deck(python)
    mend = (deck,) if deck is not None else mend_torch(python, f"torch=={release_of(build)}", wish)
    return [
        Finding(
            rule="torchvision-mismatch",
            severity="error" if package.name == "torchvision" else "warning",
            title=f"{package.name} {package.version} does not belong to torch {build.version}",
            cause=cause,
            evidence=(evidence,),
            needs=f"{package.name} {fitting}" if fitting else f"the {package.name} of torch {release_of(build)}",
            mend=mend,
        )
    ]


def _of_catalogue(build: TorchBuild, name: str) -> str:
    """Return the version that goes with the listed release of the same minor version; empty if none is listed."""
    for release in releases():
        if numbers(release.torch)[:2] == numbers(build.version)[:2]:
            return release.torchvision if name == "torchvision" else release.torchaudio
    return ""


def _other_release(build: TorchBuild, package: Package) -> tuple[str, str] | None:
    cause = (
        "Its compiled part is linked to the torch that it was built with: importing it, or its first operator, fails."
    )
    if package.wants_torch:
        if satisfies(release_of(build), package.wants_torch):
            return None
        return cause, f"its own metadata asks for torch{package.wants_torch}"
    fitting = _of_catalogue(build, package.name)
    if not fitting or numbers(fitting)[:2] == numbers(package.version)[:2]:
        return None
    return cause, f"torchdeck's catalogue pairs torch {release_of(build)} with {package.name} {fitting}"


def _other_build(build: TorchBuild, package: Package) -> tuple[str, str] | None:
    """Compare what stands behind ``+``; a version without it says nothing."""
    theirs = package.version.partition("+")[2]
    if not re.fullmatch(r"cpu|cu\d+", theirs):
        return None
    ours = "cpu" if build.cuda is None else "cu" + build.cuda.replace(".", "")
    if theirs == ours or build.hip is not None:
        return None
    return (
        f"It is a {theirs} build beside a {ours} one: its operators are absent on the GPU, or do not load.",
        f"{package.name}/version.py says {package.version}, torch's is for {ours}",
    )


def _numpy(python: PythonFacts, build: TorchBuild, numpy: Package | None, policy: Policy) -> list[Finding]:
    if numpy is None or numbers(numpy.version)[:1] < (2,) or numbers(build.version) >= policy.torch_for_numpy_2:
        return []
    return [
        Finding(
            rule="numpy2-abi",
            severity="warning",
            title=f"NumPy {numpy.version} with torch {build.version}, which was compiled for NumPy 1",
            cause="Conversions between tensors and arrays fail, or warn at import. torch reads NumPy 2 from "
            f"{'.'.join(map(str, policy.torch_for_numpy_2))} on.",
            evidence=(f"both read from the packages of {python.path}",),
            needs="NumPy 1, or a newer torch",
            mend=mend_packages(python, "numpy<2"),
        )
    ]


def _mkl(python: PythonFacts, torch: Package | None, mkl: Package | None, policy: Policy) -> list[Finding]:
    """Find the conda build of torch of PyTorch's own channel, which links to MKL, beside an MKL that is too new.

    conda-forge's builds are compiled against the MKL that they ask for; PyTorch's begin with ``py3``.
    """
    if torch is None or mkl is None or not (torch.build or "").startswith("py"):
        return []
    if numbers(mkl.version) < policy.mkl_without_symbol:
        return []
    folder = python.path.rpartition("/bin/")[0]
    prefix = f"--prefix {quoted(folder)} " if folder else ""
    return [
        Finding(
            rule="mkl-symbol-removed",
            severity="error",
            title=f"MKL {mkl.version} lacks a symbol that conda's torch {torch.version} links to",
            cause="MKL dropped iJIT_NotifyEvent with 2024.1; importing torch fails with an undefined symbol.",
            evidence=(f"conda-meta names mkl {mkl.version} and pytorch {torch.version} ({torch.build})",),
            needs="an MKL before 2024.1, or torch from a wheel",
            mend=(f"conda install {prefix}'mkl<2024.1'", "torchdeck up"),
        )
    ]


def _triton(python: PythonFacts, build: TorchBuild, packages: dict[str, Package]) -> list[Finding]:
    if build.cuda is None:
        return []
    wheels = () if isinstance(build.wheels, Missing) else build.wheels
    wished = next((wheel for wheel in wheels if wheel.name.endswith("triton") and wheel.wanted is not None), None)
    found = packages.get("triton") or packages.get("pytorch-triton")
    if found is not None and (wished is None or not _differs(found, wished)):
        return []
    wish = f"{wished.name}{wished.wanted}" if wished else "triton"
    title = (
        f"Triton is not installed beside torch {build.version}: torch.compile will fail on the GPU"
        if found is None
        else f"{found.name} {found.version} is not the one of torch {build.version}"
    )
    return [
        Finding(
            rule="compile-triton-missing",
            severity="warning",
            title=title,
            cause="Inductor writes its GPU kernels in Triton, and uses the functions of one release of it.",
            evidence=(
                f"torch's metadata asks for {wish}" if wished else f"no triton among the packages of {python.path}",
            ),
            needs=wish,
            mend=mend_packages(python, wish),
        )
    ]


def _differs(found: Package, wished: Wheel) -> bool:
    return found.name == wished.name and not satisfies(found.version, wished.wanted or "")


def _python_too_new(python: PythonFacts, build: TorchBuild) -> list[Finding]:
    limit = build.compile_below
    if limit is None or limit == NOT_GATHERED:
        return []
    if isinstance(limit, Missing):
        return [unknown("compile-python-too-new", f"whether torch {build.version} compiles here", limit)]
    if len(numbers(limit)) < 2 or numbers(python.version)[:2] < numbers(limit):
        return []
    return [
        Finding(
            rule="compile-python-too-new",
            severity="warning",
            title=f"torch.compile of torch {build.version} refuses Python {python.version}",
            cause="Its front end reads Python's bytecode, which changes with each release.",
            evidence=(f"torch's own code refuses Python {limit} and newer",),
            needs=f"a Python older than {limit}, or a newer torch",
            mend=(
                f"torchdeck upgrade --name {quoted(python.deck)}"
                if python.deck is not None
                else f"torchdeck up --python {_before(limit)}",
                "torchdeck stacks",
            ),
        )
    ]


def _before(limit: str) -> str:
    major, minor = numbers(limit)[:2]
    return f"{major}.{minor - 1}"
