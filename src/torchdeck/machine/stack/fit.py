"""Whether one build fits one machine: the rules, and the words for each no.

The rules: the processor architecture, a wheel for the Python, a driver at least as new as the floor of the build's
CUDA, and for every GPU either machine code of the same major capability and no higher minor one, or intermediate code
(PTX) no newer than the GPU. Sources stand in the catalogue.
"""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, GpuTargets, Release, cuda_of, gpu_targets, tegra
from torchdeck.machine.facts import Missing
from torchdeck.machine.stack.parse import version_tuple
from torchdeck.machine.stack.request import StackRequest

No = tuple[str, str]  # code, reason
Cc = tuple[int, int]


def sm(cc: Cc) -> str:
    """Return a compute capability as compilers write it: ``sm_90``."""
    return f"sm_{cc[0]}{cc[1]}"


def unfit(row: BuildRow, release: Release, request: StackRequest, *, forced: bool) -> No | None:
    """Return why a build does not fit a machine; None if it fits.

    Args:
        row: The build.
        release: Its release.
        request: The machine.
        forced: Whether this very variant was asked for: then a GPU may idle, and a CUDA build may lack a driver.
    """
    return (
        _unfit_arch(row, request)
        or _unfit_python(row.pythons or release.pythons, request)
        or (
            _unfit_cpu_machine(row, forced=forced)
            if request.driver is None
            else _unfit_gpu(row, request, forced=forced)
        )
    )


def _unfit_arch(row: BuildRow, request: StackRequest) -> No | None:
    if row.arch == request.arch:
        return None
    return "architecture", f"is built for {row.arch}, this machine is {request.arch}"


def _unfit_python(pythons: tuple[str, str], request: StackRequest) -> No | None:
    if isinstance(request.python, Missing) or within(request.python, pythons):
        return None
    first, last = pythons
    return "python-unsupported", f"has wheels for Python {first} to {last}, not {request.python}"


def within(python: str, pythons: tuple[str, str]) -> bool:
    """Whether a Python is one of a range of them."""
    return version_tuple(pythons[0]) <= version_tuple(python) <= version_tuple(pythons[1])


def _unfit_cpu_machine(row: BuildRow, *, forced: bool) -> No | None:
    if row.variant == "cpu" or forced:
        return None
    return "needs-driver", f"is built for CUDA {row.cuda}, and there is no NVIDIA driver"


def _unfit_gpu(row: BuildRow, request: StackRequest, *, forced: bool) -> No | None:
    if row.variant == "cpu":
        return None if forced else ("leaves-gpu-idle", "is a CPU build: the GPU would do nothing")
    assert request.driver is not None
    floor = cuda_of(row.cuda).floor
    if not isinstance(request.driver, Missing) and version_tuple(request.driver) < version_tuple(floor):
        return (
            "driver-too-old",
            f"needs a driver of at least {floor} for its CUDA {row.cuda}, this one is {request.driver}",
        )
    if isinstance(request.ccs, Missing):
        return None
    targets = gpu_targets()[row.targets]
    for cc in request.ccs:
        if not runs_on(targets, cc):
            return _no_code(targets, cc)
    return None


def runs_on(targets: GpuTargets, cc: Cc) -> bool:
    """Whether a build with this GPU code runs on a GPU of this compute capability."""
    return code_for(targets, cc) is not None


def code_for(targets: GpuTargets, cc: Cc) -> str | None:
    """Return which of its code a build would run on a GPU: ``sm_86``, or ``compute_120`` for PTX; None if none."""
    if cc in tegra():
        return sm(cc) if cc in targets.binary else None
    fitting = [code for code in targets.binary if code[0] == cc[0] and code[1] <= cc[1] and code not in tegra()]
    if fitting:
        return sm(max(fitting))
    older = [code for code in targets.ptx if code <= cc]
    return sm(max(older)).replace("sm", "compute") if older else None


def _no_code(targets: GpuTargets, cc: Cc) -> No:
    held = f"{sm(min(targets.binary))} to {sm(max(targets.binary))}"
    if cc in tegra():
        return "arch-tegra", f"holds no code for the integrated GPU {sm(cc)}, which runs no other GPU's"
    if cc > max(targets.binary):
        return "arch-newer-than-wheel", f"holds code for {held}, none that the newer {sm(cc)} can run"
    if cc < min(targets.binary):
        return "arch-dropped-from-wheel", f"holds code for {held}, none for the older {sm(cc)}"
    return "arch-missing", f"holds code for {held}, none that {sm(cc)} can run"
