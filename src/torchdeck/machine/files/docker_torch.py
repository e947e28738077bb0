"""Rules on torch in a Dockerfile: what is installed, twice, unpinned, for another Python, beside another torch."""

from __future__ import annotations

import re

from torchdeck.machine.catalogue import REFERENCE, Release, cuda_of, releases
from torchdeck.machine.files.docker_view import BRINGS_TORCH, View, brings_torch
from torchdeck.machine.files.hit import Hit, hit
from torchdeck.machine.files.pip import Install
from torchdeck.machine.files.torch_pins import (
    CONDA_TORCH,
    TORCH_FAMILY,
    Indexes,
    builds_of,
    conda_pip_mix,
    install_line,
    judge_cuda_wheels,
    judge_index,
    judge_numpy,
    judge_pairs,
    judge_release,
    judge_triton,
    pypi_build,
    python_unsupported,
    release_of,
)
from torchdeck.machine.stack.parse import version_tuple

_BUILDS_CUDA = re.compile(
    r"\bnvcc\b|flash[-_]attn|setup\.py|--no-build-isolation|TORCH_CUDA_ARCH_LIST|\bapex\b|deepspeed|cmake|\bninja\b|"
    r"CUDA_HOME|MAX_JOBS|causal[-_]conv1d|mamba[-_]ssm|pytorch3d|detectron2|tinycudann|tiny-cuda-nn"
)
_OTHER_PYTHON = re.compile(r"pyenv|conda|mamba|uv venv|uv python|altinstall|deadsnakes|python3\.\d+")
_COMPILER = re.compile(
    r"(gcc|g\+\+|clang|clang\+\+)(-\d+)?|build-essential|build-base|base-devel|gcc-c\+\+|gxx|(gcc|gxx)_linux-[\w-]+|"
    r"c(xx)?-compiler|compilers|nvidia-cuda-toolkit|cuda-(toolkit|nvcc)[\d.-]*"
)
_REMOVES = frozenset(("purge", "remove", "autoremove", "--purge", "del", "erase"))
_UPGRADES = frozenset(("-U", "--upgrade", "--force-reinstall", "-I", "--ignore-installed", "--reinstall"))


def judge_torch(view: View) -> list[Hit]:
    """Run the rules on torch over one stage."""
    pins = view.pip_pins()
    indexes = [view.indexes(install) for install in view.pip()]
    union = Indexes(tuple(name for one in indexes for name in one.variants), other=any(one.other for one in indexes))
    hits = [
        *judge_pairs(pins),
        *judge_release([pin for pin in pins if not pin.direct]),
        *judge_triton(pins),
        *judge_numpy(pins),
        *judge_cuda_wheels(pins, union),
        *_pinning(view),
        *_python(view),
        *_conda_and_pip(view),
        *_replaced(view),
        *_musl(view),
    ]
    for install in view.pip():
        hits += judge_index(install.pins, view.indexes(install))
        hits += _unquoted(install)
    if view.shipped:
        hits += [*_twice(view), *_cpu_on_cuda(view), *_compiler(view), *_shadowed(view)]
    return hits


def suggestion(variants: tuple[str, ...]) -> tuple[Release, str]:
    """Return the release to offer for an index: the reference if the index has it, else the newest that it has."""
    for release in (*(r for r in releases() if r.torch == REFERENCE), *reversed(releases())):
        rows = builds_of(release.torch)
        if not variants:
            return release, ""
        for variant in variants:
            if any(row.variant == variant and row.torch == release.torch for row in rows):
                return release, variant
    return next(r for r in releases() if r.torch == REFERENCE), ""


def _pinning(view: View) -> list[Hit]:
    hits = []
    fixed = bool(view.image and view.image.has_torch)
    constrained = any(view.env.get(name) for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT"))
    for install in view.pip():
        constrained = constrained or bool(install.flags & {"-c", "--constraint", "--constraints"})
        for pin in install.pins:
            if pin.name != "torch":
                continue
            if not pin.bounded and not constrained and (not fixed or bool(install.flags & _UPGRADES)):
                hits.append(_unpinned(pin.specifier, pin.line, view.indexes(install).variants))
            fixed = fixed or pin.bounded
    return hits


def _unpinned(specifier: str, line: int, variants: tuple[str, ...]) -> Hit:
    release, variant = suggestion(variants)
    return hit(
        line,
        "torch-unpinned",
        "warning",
        f"torch{specifier or ' without a version'}: each build of this image may get another torch",
        cause="The newest release decides CUDA, the driver that hosts need, and the torchvision that fits.",
        evidence=f"torch {releases()[-1].torch} is the newest in the catalogue",
        needs="one release, and the torchvision that goes with it",
        mend=install_line(release, variant),
    )


def _unquoted(install: Install) -> list[Hit]:
    return [
        hit(
            pin.line,
            "pip-requirement-unquoted",
            "error" if pin.name in TORCH_FAMILY else "warning",
            f"the shell cuts the version off {pin.name}",
            cause="Without quotes < and > redirect: pip sees the bare name, and the version becomes a file's name.",
            needs="quotes around the requirement",
            mend=f'pip install "{pin.name}>=…"',
        )
        for pin in install.unquoted
    ]


def _python(view: View) -> list[Hit]:
    image = view.image
    if image is None or not image.python:
        return []
    text = "\n".join(one.everything for one in view.history if one.name in ("RUN", "ENV"))
    other = re.sub(rf"python{re.escape(image.python)}\b", "", text)
    if _OTHER_PYTHON.search(other):
        return []
    hits = []
    for install in view.pip():
        for pin in install.pins:
            release = release_of(pin.version) if pin.name == "torch" and install.system else None
            if release is None:
                continue
            first, last = (version_tuple(text) for text in release.pythons)
            if not first <= version_tuple(image.python) <= last:
                name = f"Python {image.python} of {image.name}:{image.tag}"
                hits.append(python_unsupported(pin.line, name, pin.version))
    return hits


def _conda_and_pip(view: View) -> list[Hit]:
    conda = next(
        (
            pin
            for _, install in view.installs
            if install.tool == "conda"
            for pin in install.pins
            if pin.name in CONDA_TORCH
        ),
        None,
    )
    pip = next((pin for install in view.pip() for pin in install.pins if pin.name in TORCH_FAMILY), None)
    return [] if conda is None or pip is None else [conda_pip_mix(conda.line, conda.name, pip.line, pip.name)]


def _replaced(view: View) -> list[Hit]:
    image = view.image
    if image is None or not image.has_torch:
        return []
    for install in view.pip():
        for pin in install.pins:
            if pin.name != "torch" or pin.open:
                continue
            own = view.base_torch
            keeps = pin.accepts(own) if own else not pin.specifier
            if keeps and not install.flags & _UPGRADES and not pin.direct:
                continue
            return [
                hit(
                    pin.line,
                    "base-torch-replaced",
                    "warning",
                    f"pip puts another torch over the {own or 'one'} of {image.name}",
                    cause="Both stay in the image, and what the base built against its own torch may not load.",
                    evidence=f"line {view.from_line}: {image.name}:{image.tag}",
                    needs="the torch of the base, or a base without torch",
                    mend=("leave torch out of pip install", "FROM python:3.12-slim"),
                )
            ]
    return []


def _musl(view: View) -> list[Hit]:
    image = view.image
    for install in view.pip():
        if image is not None and image.musl and any(pin.name in BRINGS_TORCH for pin in install.pins):
            return [
                hit(
                    install.line,
                    "torch-no-musl-wheels",
                    "error",
                    f"torch has no wheels for Alpine ({image.name}:{image.tag})",
                    cause="Its wheels are for glibc; Alpine has musl, and pip finds no distribution.",
                    evidence=f"line {view.from_line}: FROM {image.name}:{image.tag}",
                    needs="a base with glibc",
                    mend=f"FROM python:{image.python or '3.12'}-slim",
                )
            ]
    return []


def _cuda_torch(view: View) -> Install | None:
    """Return the command that brings torch's CUDA libraries as wheels; None if torch is built for the CPU."""
    install = view.torch_install()
    if install is None:
        return None
    variants = view.indexes(install).variants
    tags = {pin.local for pin in install.pins if pin.local}
    cpu = "cpu" in tags or (not tags and bool(variants) and all(name == "cpu" for name in variants))
    return None if cpu else install


def builds_extensions(view: View) -> bool:
    """Whether the image needs the CUDA toolkit of its base, because something is compiled with it."""
    text = "\n".join(one.everything for one in view.history)
    return bool(view.image and view.image.flavour == "devel" and _BUILDS_CUDA.search(text))


def _twice(view: View) -> list[Hit]:
    image, install = view.image, _cuda_torch(view)
    if image is None or install is None or image.maker != "cuda" or image.flavour == "base" or builds_extensions(view):
        return []
    torch = next((pin for pin in install.pins if pin.name == "torch" and pin.version), None)
    row = pypi_build(torch.version) if torch is not None else None
    floor = f", where torch {row.torch}+{row.variant} itself runs from {cuda_of(row.cuda).floor} on" if row else ""
    return [
        hit(
            install.line,
            "cuda-installed-twice",
            "warning",
            f"{image.name}:{image.tag} holds CUDA, and pip's torch brings its own",
            cause="torch's wheels use the CUDA libraries that come with them as wheels; those of the base stay unused, "
            f"gigabytes of them. The base also asks hosts for the driver of its CUDA {image.cuda}{floor}.",
            evidence=(f"line {view.from_line}: FROM {image.name}:{image.tag}", f"line {install.line}: pip's torch"),
            needs="a base without CUDA; the driver comes from the host",
            mend="FROM python:3.12-slim",
        )
    ]


def _cpu_on_cuda(view: View) -> list[Hit]:
    image, install = view.image, view.torch_install()
    if image is None or install is None or image.maker != "cuda" or _cuda_torch(view) is not None:
        return []
    return [
        hit(
            install.line,
            "wheel-cpu-only",
            "warning",
            f"a CPU build of torch on {image.name}:{image.tag}",
            cause="It never uses a GPU, and the CUDA of the base is dead weight.",
            evidence=f"line {install.line}: the index or the tag says cpu",
            needs="a CUDA build of torch, or a base without CUDA",
            mend=(install_line(suggestion(())[0]), "FROM python:3.12-slim"),
        )
    ]


def _compiler(view: View) -> list[Hit]:
    image = view.image
    base = image is not None and image.has_torch
    install = view.torch_install()
    if image is None or image.compiler is not False or not (base or install):
        return []
    if any(view.env.get(name) == "1" for name in ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")):
        return []
    pins = [pin for pin in (install.pins if install else ()) if pin.name == "torch" and pin.version]
    if any(version_tuple(pin.version.split(".")[0]) < (2,) for pin in pins):
        return []
    has = False
    for _, words, _ in view.runs:
        if any(_COMPILER.fullmatch(word.text.split("=")[0]) for word in words):
            has = not any(word.text in _REMOVES for word in words)
    if has:
        return []
    return [
        hit(
            install.line if install else view.from_line,
            "compile-no-c-compiler",
            "info",
            f"no C compiler in the image: torch.compile will fail ({image.name}:{image.tag} has none)",
            cause="Inductor compiles CPU code with g++, Triton its launchers with gcc, where the program runs.",
            evidence="no gcc, g++, clang or build-essential is installed in this stage",
            needs="gcc and g++ in the final stage, if torch.compile is used",
            mend="RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*",
        )
    ]


def _shadowed(view: View) -> list[Hit]:
    value = view.env.get("LD_LIBRARY_PATH", "")
    folders = [part for part in value.split(":") if re.match(r"/usr/local/cuda[\w.-]*(/(?!compat)|$)", part)]
    install = _cuda_torch(view)
    if not folders or install is None or not brings_torch(install):
        return []
    return [
        hit(
            view.setting_line("LD_LIBRARY_PATH"),
            "cuda-lib-shadowed",
            "warning",
            f"LD_LIBRARY_PATH puts {folders[0]} before the libraries that came with torch",
            cause="The loader searches it first: cuBLAS or cuDNN of another release takes the wheel's place.",
            evidence=f"line {install.line}: torch as a wheel",
            needs="no CUDA folder in LD_LIBRARY_PATH; torch finds its own libraries",
            mend="remove the CUDA folders from LD_LIBRARY_PATH",
        )
    ]
