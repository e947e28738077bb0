"""Rules on pins of torch and of what belongs to it; the same for every kind of file.

It knows the releases of the catalogue. Of a release that is not listed it knows what its series shares, never more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchdeck.machine.catalogue import BuildRow, Release, builds, releases
from torchdeck.machine.files.hit import Hit, hit
from torchdeck.machine.files.pins import Pin

# Versions that stand for all of NumPy 1 and of NumPy 2.
_NUMPY_1 = ("1.21.6", "1.24.4", "1.25.2", "1.26.0", "1.26.4")
_NUMPY_2 = ("2.0.0", "2.0.2", "2.1.3", "2.2.6", "2.3.5", "2.4.0", "2.99.0")
# torch 2.3.0 is the first whose wheels are built against NumPy 2 (issues 107302 and 132179 of pytorch/pytorch).
_FIRST_WITH_NUMPY_2 = "2.3.0"
_MAX_SAME = 20
TORCH_FAMILY = frozenset(("torch", "torchvision", "torchaudio"))
CONDA_TORCH = frozenset(("pytorch", "torch", "pytorch-gpu", "pytorch-cpu", "pytorch-cuda", "libtorch"))


@dataclass(frozen=True)
class Indexes:
    """Where packages come from, as far as the file says.

    Args:
        variants: The builds that the named indexes hold, such as ``cu124``.
        only: Whether no default index stands behind them.
        other: Whether any index beside the default one is named, or may be set outside of what can be read.
        certain: Whether the file decides it; a requirements file does not, its caller may name an index.
    """

    variants: tuple[str, ...] = ()
    only: bool = False
    other: bool = False
    certain: bool = True


def judge_pins(pins: Sequence[Pin], indexes: Indexes) -> list[Hit]:
    """Find pins that do not go together, or that no index serves."""
    return [
        *judge_pairs(pins),
        *judge_release(pins),
        *judge_index(pins, indexes),
        *judge_triton(pins),
        *judge_numpy(pins),
        *judge_cuda_wheels(pins, indexes),
    ]


def release_of(version: str) -> Release | None:
    """Return the release of the catalogue with this version."""
    return next((release for release in releases() if release.torch == version), None)


def series_of(version: str) -> Release | None:
    """Return the release of the catalogue with this major and minor version."""
    return next((release for release in releases() if _series(release.torch) == _series(version)), None)


def builds_of(version: str) -> tuple[BuildRow, ...]:
    """Return the builds of a release, or of the listed release of its series."""
    release = series_of(version)
    return tuple(row for row in builds() if release is not None and row.torch == release.torch)


def pypi_build(version: str) -> BuildRow | None:
    """Return the build that PyPI serves for an x86_64 machine."""
    return next((row for row in builds_of(version) if row.index == "pypi" and row.arch == "x86_64"), None)


def named(pins: Sequence[Pin], name: str) -> list[Pin]:
    """Return the pins of one package, the first few: each is held against each."""
    return [pin for pin in pins if pin.name == name][:_MAX_SAME]


def install_line(release: Release, variant: str = "") -> str:
    """Return the command that installs a release with its torchvision, from the index of a variant."""
    backend = f"--torch-backend={variant} " if variant else ""
    return f"uv pip install {backend}torch=={release.torch} torchvision=={release.torchvision}"


def _series(version: str) -> tuple[int, ...]:
    try:
        return Version(version).release[:2]
    except InvalidVersion:
        return ()


def judge_pairs(pins: Sequence[Pin]) -> list[Hit]:
    """Hold exact torchvision and torchaudio pins against the exact torch pin beside them."""
    hits: list[Hit] = []
    torches = [pin for pin in named(pins, "torch") if pin.version]
    for torch in torches:
        for name in ("torchvision", "torchaudio"):
            for pin in named(pins, name):
                if pin.version and (len(torches) == 1 or pin.marker == torch.marker):
                    hits += _pair(torch, pin, name)
    return hits


def _pair(torch: Pin, pin: Pin, name: str) -> list[Hit]:
    if torch.local and pin.local and torch.local != pin.local:
        return [
            hit(
                pin.line,
                "torchvision-mismatch",
                "error",
                f"{name} is the build {pin.local}, torch the build {torch.local}",
                cause="Both load the same CUDA libraries, and their operators register with one build of torch only.",
                evidence=(f"torch=={torch.version}+{torch.local}", f"{name}=={pin.version}+{pin.local}"),
                needs="one build tag for all of them",
                mend=f"{name}=={pin.version}+{torch.local}",
            )
        ]
    release = release_of(torch.version) or series_of(torch.version)
    right = "" if release is None else getattr(release, name)
    if release is None or not right or pin.version == right:
        return []
    same_series = _series(pin.version) == _series(right)
    if same_series and release.torch != torch.version:
        return []  # another patch release than the listed one: its pair is not known
    return [
        hit(
            pin.line,
            "torchvision-mismatch",
            "warning" if same_series else "error",
            f"{name} {pin.version} does not belong to torch {torch.version}",
            cause=f"Each {name} is built against one torch: pip refuses the two together, or its operators are missing "
            "at run time.",
            evidence=f"{name} {right} goes with torch {release.torch}: {release.source}",
            needs=f"{name} {right}" if release.torch == torch.version else f"the {name} of torch {torch.version}",
            mend=f"{name}=={right}" if release.torch == torch.version else f"torch=={release.torch} {name}=={right}",
        )
    ]


def judge_release(pins: Sequence[Pin]) -> list[Hit]:
    """Say which exact torch pins the catalogue does not list."""
    hits = []
    for pin in named(pins, "torch"):
        if not pin.version or release_of(pin.version):
            continue
        series = series_of(pin.version)
        listed = ", ".join(release.torch for release in releases())
        hits.append(
            hit(
                pin.line,
                "torch-release-unknown",
                "info" if series else "unknown",
                f"torch {pin.version} is not in the catalogue",
                cause=f"Of its series, {series.torch} is listed; judged by that."
                if series
                else "Its builds, drivers and companions are not known here, and were not judged.",
                needs=f"a listed release: {listed}",
                mend=f"torch=={series.torch}" if series else "torchdeck stacks",
            )
        )
    return hits


def judge_index(pins: Sequence[Pin], indexes: Indexes) -> list[Hit]:
    """Hold the pinned torch against the builds that it has, and the index against the pinned build."""
    hits: list[Hit] = []
    for pin in named(pins, "torch"):
        if not pin.version or pin.direct:
            continue
        have = sorted({row.variant for row in builds_of(pin.version)})
        wanted = [pin.local] if pin.local else list(indexes.variants)
        gone = [name for name in wanted if name.startswith("cu") and have and name not in have]
        if gone and len(gone) == len(wanted):
            hits.append(_no_such_build(pin, gone[0], have, silent=not pin.local and not indexes.only))
        elif pin.local and not indexes.other:
            hits.append(_no_index(pin, certain=indexes.certain))
        elif pin.local and indexes.variants and pin.local not in indexes.variants:
            hits.append(
                hit(
                    pin.line,
                    "torch-build-not-on-index",
                    "error",
                    f"torch {pin.version}+{pin.local} is not on the index for {', '.join(indexes.variants)}",
                    cause="Each of PyTorch's indexes holds one build: pip finds no distribution.",
                    needs=f"the index {pin.local}",
                    mend=f"uv pip install --torch-backend={pin.local} torch=={pin.version}",
                )
            )
    return hits


def _no_such_build(pin: Pin, variant: str, have: list[str], *, silent: bool) -> Hit:
    usual = pypi_build(pin.version)
    mend = usual.variant if usual is not None else have[-1]
    fallback = f" (built for {mend})" if usual is not None else ""
    return hit(
        pin.line,
        "torch-build-not-on-index",
        "warning" if silent else "error",
        f"torch {pin.version} has no build for {variant}",
        cause=f"The default index stands behind it: pip takes PyPI's torch{fallback} without a word."
        if silent
        else "The index holds no such file: pip finds no distribution.",
        evidence=f"torch {pin.version} is built for {', '.join(have)}",
        needs=f"one of {', '.join(have)}, or a release that is built for {variant}",
        mend=f"uv pip install --torch-backend={mend} torch=={pin.version}",
    )


def _no_index(pin: Pin, *, certain: bool) -> Hit:
    return hit(
        pin.line,
        "torch-index-missing",
        "error" if certain else "warning",
        f"torch {pin.version}+{pin.local} is pinned, and no index that has it is named",
        cause="Builds with a tag are on PyTorch's own indexes only; PyPI serves none.",
        needs=f"an --index-url or --extra-index-url that ends in {pin.local}, or a pin without the tag",
        mend=(f"uv pip install --torch-backend={pin.local} torch=={pin.version}", f"torch=={pin.version}"),
    )


def judge_triton(pins: Sequence[Pin]) -> list[Hit]:
    """Hold an exact triton pin against the one that torch itself pins."""
    hits = []
    for torch in named(pins, "torch"):
        row = next((row for row in builds() if row.torch == torch.version and row.triton), None)
        for pin in named(pins, "triton"):
            if row is None or not pin.version or pin.version == row.triton or pin.marker != torch.marker:
                continue
            hits.append(
                hit(
                    pin.line,
                    "compile-triton-missing",
                    "error",
                    f"triton {pin.version} is pinned, torch {torch.version} pins triton {row.triton}",
                    cause="torch.compile uses the Triton it was built with; pip cannot install both.",
                    evidence=f"torch {row.torch}+{row.variant}: {row.source}",
                    needs=f"triton {row.triton}, or no pin: torch brings it",
                    mend=f"triton=={row.triton}",
                )
            )
    return hits


def judge_numpy(pins: Sequence[Pin]) -> list[Hit]:
    """Find a torch that is built against NumPy 1 beside a NumPy that is, or will be, 2."""
    later = (_FIRST_WITH_NUMPY_2, "2.3.1", *(release.torch for release in releases()), "99.0")
    old = [pin for pin in named(pins, "torch") if pin.specifier and not any(pin.accepts(text) for text in later)]
    hits = []
    for torch in old:
        for pin in named(pins, "numpy"):
            takes_2 = any(pin.accepts(text) for text in _NUMPY_2) or pin.version.startswith("2.")
            if pin.direct or pin.open or not takes_2 or (pin.marker and pin.marker != torch.marker):
                continue
            must = not any(pin.accepts(text) for text in _NUMPY_1)
            hits.append(
                hit(
                    pin.line,
                    "numpy2-abi",
                    "error" if must else "warning",
                    f"numpy{pin.specifier} {'is' if must else 'may be'} NumPy 2, torch{torch.specifier} is built for 1",
                    cause="Binaries built against NumPy 1 cannot use NumPy 2: torch warns, and .numpy() fails.",
                    evidence=f"torch {_FIRST_WITH_NUMPY_2} is the first that is built against NumPy 2",
                    needs="numpy<2, or a newer torch",
                    mend="numpy<2",
                )
            )
    return hits


def judge_cuda_wheels(pins: Sequence[Pin], indexes: Indexes) -> list[Hit]:
    """Find NVIDIA's wheels of two CUDA majors, or of another major than torch's."""
    found: dict[str, Pin] = {}
    for pin in pins:
        if pin.name.startswith("nvidia-") and pin.name[-5:] in ("-cu11", "-cu12", "-cu13"):
            found.setdefault(pin.name[-2:], pin)
    if len(found) > 1:
        last = max(found.values(), key=lambda pin: pin.line)
        return [
            hit(
                last.line,
                "cuda-wheels-mixed",
                "error",
                f"libraries of CUDA {' and '.join(sorted(found))} are pinned together",
                cause="One torch uses the libraries of one CUDA; the others fill the disk or take their place.",
                evidence=tuple(f"line {pin.line}: {pin.name}" for pin in found.values()),
                needs="libraries of one CUDA, or no pins on them: torch brings its own",
                mend="remove the nvidia-* lines",
            )
        ]
    torch = next((pin for pin in named(pins, "torch") if pin.version), None)
    if (
        torch is None
        or not found
        or (not torch.local and (indexes.other or (indexes.variants and not indexes.certain)))
    ):
        return []
    usual = pypi_build(torch.version)
    variant = torch.local or ("" if usual is None else usual.variant)
    major, pin = next(iter(found.items()))
    if not variant.startswith("cu") or variant[2:4] == major:
        return []
    return [
        hit(
            pin.line,
            "cuda-wheels-mixed",
            "warning",
            f"{pin.name} is of CUDA {major}, torch {torch.version} is built for {variant}",
            cause="torch brings the libraries of its own CUDA; these are another set beside them.",
            evidence=f"line {torch.line}: torch{torch.specifier}",
            needs="no pins on nvidia-* wheels",
            mend="remove the nvidia-* lines",
        )
    ]


def conda_pip_mix(conda_line: int, conda: str, pip_line: int, pip: str) -> Hit:
    """Return the finding that conda and pip both install torch."""
    return hit(
        max(conda_line, pip_line),
        "conda-pip-torch-mixed",
        "warning",
        f"conda installs {conda}, pip installs {pip}",
        cause="Neither knows the other's torch: the later one overwrites files of the first, with other CUDA and MKL.",
        evidence=(f"line {conda_line}: {conda} by conda", f"line {pip_line}: {pip} by pip"),
        needs="torch and its companions from one of them",
        mend="install torch, torchvision and torchaudio with pip only",
    )


def python_unsupported(line: int, python: str, torch: str) -> Hit:
    """Return the finding that a torch release has no wheels for a Python."""
    release = release_of(torch)
    assert release is not None
    first, last = release.pythons
    return hit(
        line,
        "python-unsupported",
        "error",
        f"torch {torch} has no wheels for {python}",
        cause=f"It has them for Python {first} to {last}; pip finds no distribution.",
        evidence=f"{release.source}",
        needs=f"a Python from {first} to {last}, or another torch",
        mend="torchdeck stacks --python 3.12",
    )
