"""The torch that is installed, held against driver, GPU, its own wheels, its companions and its libraries."""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, GpuTargets, builds, cuda_of, gpu_targets
from torchdeck.machine.facts import Driver, Facts, Gpu, Missing, Nvidia, PythonFacts, TorchBuild
from torchdeck.machine.facts.nvidia import NOT_GATHERED
from torchdeck.machine.judge.companions import judge_companions
from torchdeck.machine.judge.cuda_wheels import judge_libraries, judge_wheels
from torchdeck.machine.judge.gpu import judge_arch, judge_driver
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.repair import mend_torch, release_of
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding
from torchdeck.machine.stack.fit import code_for, sm


def judge_torch_build(facts: Facts, policy: Policy | None = None) -> list[Finding]:
    """Judge the torch in the Python at hand. A Python without torch has none of these findings.

    Args:
        facts: All facts; those on the GPU are judged elsewhere too, and a missing one is named there.
        policy: The thresholds.
    """
    python = facts.python
    if isinstance(python, Missing) or python.torch is None:
        return []
    if isinstance(python.torch, Missing):
        return [unknown("wheel-cpu-only", f"which torch is in {python.path}", python.torch)]
    build = python.torch
    return [
        *_cpu_only(facts.nvidia, python, build),
        *_fit(facts, build),
        *judge_wheels(python, build),
        *judge_libraries(python, build),
        *judge_companions(python, build, policy or Policy()),
    ]


def _cpu_only(nvidia: Nvidia | Missing, python: PythonFacts, build: TorchBuild) -> list[Finding]:
    if build.cuda is not None or isinstance(nvidia, Missing) or not isinstance(nvidia.driver, Driver):
        return []
    if isinstance(nvidia.gpus, Missing) or not nvidia.gpus:
        return []
    names = ", ".join(dict.fromkeys(gpu.name for gpu in nvidia.gpus))
    kind = f"for AMD's GPUs (ROCm {build.hip})" if build.hip else "for the CPU only"
    return [
        Finding(
            rule="wheel-cpu-only",
            severity="warning",
            title=f"torch {build.version} is built {kind}: the GPU here ({names}) does nothing",
            cause="Such a build holds no CUDA code, whatever driver there is. An index, a mirror or a pin served it.",
            evidence=(
                f"torch/version.py in {python.path}'s packages names no CUDA",
                f"driver {nvidia.driver.version}, read from {nvidia.driver.source}",
            ),
            needs="a build for CUDA",
            mend=mend_torch(python, f"torch=={release_of(build)}", *_companion_names(build)),
        )
    ]


def _companion_names(build: TorchBuild) -> list[str]:
    if isinstance(build.companions, Missing):
        return []
    return [package.name for package in build.companions if package.name in ("torchvision", "torchaudio")]


def _fit(facts: Facts, build: TorchBuild) -> list[Finding]:
    """Hold the build against driver and GPUs; a build that the catalogue does not list by what its files say."""
    if build.cuda is None:
        return []
    row, listed = _row(facts, build)
    findings = judge_driver(facts.nvidia, row) if _is_known(row.cuda) else []
    read = None if isinstance(build.targets, Missing) or build.targets is None else as_targets(build.targets)
    if listed and (read is None or _same(read, gpu_targets()[row.targets])):
        return [*findings, *judge_arch(facts.nvidia, row)]
    if read is not None:
        return [*findings, *_arch_of_files(facts.nvidia, build, read)]
    if isinstance(build.targets, Missing) and build.targets != NOT_GATHERED and _num_gpus(facts.nvidia):
        findings = [*findings, unknown("arch-newer-than-wheel", "whether torch has code for the GPU", build.targets)]
    return findings


def _row(facts: Facts, build: TorchBuild) -> tuple[BuildRow, bool]:
    """Return the catalogue's row of a build and True, or one made of its files and False."""
    assert build.cuda is not None
    variant = "cu" + build.cuda.replace(".", "")
    release = release_of(build)
    arch = "" if isinstance(facts.system, Missing) else facts.system.arch
    for row in builds():
        if (row.torch, row.variant, row.arch) == (release, variant, arch) and row.targets:
            return row, True
    made = BuildRow(
        torch=release, variant=variant, index="", arch=arch, method="read", source="the installed files", date=""
    )
    return made, False


def _is_known(cuda: str) -> bool:
    try:
        return bool(cuda_of(cuda))
    except KeyError:
        return False


def as_targets(texts: tuple[str, ...]) -> GpuTargets:
    """Return GPU targets such as ``sm_90`` and ``compute_120`` as the catalogue has them.

    Those for one chip alone (``sm_90a``) are left out: what runs on it has ``sm_90`` beside.
    """
    pairs: dict[str, list[tuple[int, int]]] = {"sm": [], "compute": []}
    for text in texts:
        kind, _, number = text.partition("_")
        if number.isascii() and number.isdigit() and len(number) >= 2 and kind in pairs:
            pairs[kind].append((int(number[:-1]), int(number[-1])))
    return GpuTargets(
        binary=tuple(pairs["sm"]), ptx=tuple(pairs["compute"]), method="read", source="the installed files", date=""
    )


def _same(one: GpuTargets, other: GpuTargets) -> bool:
    return set(one.binary) == set(other.binary) and set(one.ptx) == set(other.ptx)


def _num_gpus(nvidia: Nvidia | Missing) -> int:
    return 0 if isinstance(nvidia, Missing) or isinstance(nvidia.gpus, Missing) else len(nvidia.gpus)


def _arch_of_files(nvidia: Nvidia | Missing, build: TorchBuild, targets: GpuTargets) -> list[Finding]:
    """Decide by the GPU code that stands in the installed files; a GPU that is not known is named elsewhere."""
    if isinstance(nvidia, Missing) or isinstance(nvidia.gpus, Missing) or not targets.binary:
        return []
    return [
        _no_code(gpu, gpu.cc, build, targets)
        for gpu in nvidia.gpus
        if not isinstance(gpu.cc, Missing) and code_for(targets, gpu.cc) is None
    ]


def _no_code(gpu: Gpu, cc: tuple[int, int], build: TorchBuild, targets: GpuTargets) -> Finding:
    held = " ".join(sm(code) for code in targets.binary)
    return Finding(
        rule="arch-newer-than-wheel" if cc > max(targets.binary) else "arch-dropped-from-wheel",
        severity="error",
        title=f"torch {build.version} holds no code for GPU {gpu.index} ({gpu.name}, {sm(cc)})",
        cause="Every kernel launch on it fails.",
        evidence=(f"{held}: read from the installed libtorch_python.so",),
        needs=f"a build with code for {sm(cc)}",
        mend=("torchdeck stacks", "torchdeck up --stack latest"),
    )
