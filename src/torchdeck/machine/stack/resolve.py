"""The choice: among the builds that fit, the nearest to what was asked for.

Order of preference. Releases: the one asked for; without a wish the reference, then the others by their distance from
it in the catalogue (of two equally far the newer). Builds of a release: PyPI's first, since every machine reaches it
or a mirror of it; then those whose recommended driver is there; then the newest CUDA.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from torchdeck.errors import UsageError
from torchdeck.machine.catalogue import REFERENCE, BuildRow, builds, cuda_of, gpu_targets, releases
from torchdeck.machine.facts import Missing
from torchdeck.machine.records import Build, Rejection, StackReport
from torchdeck.machine.stack.fit import No, code_for, sm, unfit, within
from torchdeck.machine.stack.parse import parse_stack, version_tuple
from torchdeck.machine.stack.request import StackRequest

PYPI = "pypi"


def listed_releases() -> tuple[str, ...]:
    """Return the torch releases that can be asked for, oldest first."""
    return tuple(release.torch for release in releases())


def resolve_reachable(request: StackRequest, can_reach: Callable[[str], bool]) -> StackReport:
    """Choose among the builds that can be had from here.

    ``can_reach`` is asked only about indexes other than the ordinary one, and only about those that matter.

    Raises:
        UsageError: The wish is no release that the catalogue knows.
    """
    unreachable: set[str] = set()
    wanted: Build | None = None
    while True:
        report = resolve_stack(request, frozenset(unreachable))
        chosen = report.chosen
        if chosen is None or chosen.index == PYPI or chosen.index in unreachable or can_reach(chosen.index):
            return msgspec.structs.replace(report, wanted=wanted)
        unreachable.add(chosen.index)
        wanted = wanted or (chosen if chosen.variant != "cpu" else None)


def resolve_stack(request: StackRequest, unreachable: frozenset[str] = frozenset()) -> StackReport:
    """Choose the build for a machine.

    Args:
        request: The machine and the wish.
        unreachable: Names of indexes that cannot be reached. A CPU build there is replaced by PyPI's build of the same
            release, which computes the same; a CUDA build never is.

    Raises:
        UsageError: The wish is no release that the catalogue knows.
    """
    release_wish, variant_wish = parse_stack(request.torch)
    ranks = _ranked_releases(release_wish)
    by_torch = {release.torch: release for release in releases()}
    _check_variant(variant_wish, ranks)
    fitting: list[BuildRow] = []
    no: dict[int, No] = {}
    for number, row in enumerate(builds()):
        refusal = (
            _unfit_wish(row, ranks, release_wish, variant_wish)
            or unfit(row, by_torch[row.torch], request, forced=bool(variant_wish))
            or _unfit_reach(row, unreachable)
        )
        if refusal is None:
            fitting.append(row)
        else:
            no[number] = refusal
    fitting.sort(key=lambda row: _preference(row, ranks, request))
    best = fitting[0] if fitting else None
    rejected = []
    for number, row in enumerate(builds()):
        if row is best:
            continue
        code, reason = no.get(number) or _less_preferred(row, best)
        rejected.append(
            Rejection(torch=row.torch, variant=row.variant, index=row.index, arch=row.arch, code=code, reason=reason)
        )
    chosen = installed = None
    if best is not None:
        chosen = build_of(best, request.python, _reasons(best, ranks, request, release_wish, rejected))
        installed = _installed(best, chosen, request.python, unreachable)
    return StackReport(
        request=request.as_texts(),
        chosen=chosen,
        installed=installed,
        rejected=tuple(rejected),
        unreachable=tuple(sorted(unreachable)),
    )


def build_of(row: BuildRow, python: str | Missing, reasons: tuple[str, ...] = ()) -> Build:
    """Return a build as reports show it, for a Python."""
    release = next(release for release in releases() if release.torch == row.torch)
    vision = release.torchvision_pythons or release.pythons
    cuda = cuda_of(row.cuda) if row.cuda else None
    return Build(
        torch=row.torch,
        variant=row.variant,
        cuda=row.cuda or None,
        index=row.index,
        arch=row.arch,
        cudnn=row.cudnn or None,
        nccl=row.nccl or None,
        triton=row.triton or None,
        torchvision=release.torchvision if isinstance(python, Missing) or within(python, vision) else None,
        torchaudio=release.torchaudio or None,
        driver_floor=cuda.floor if cuda else None,
        driver_recommended=cuda.bundled if cuda else None,
        pythons=row.pythons or release.pythons,
        method=row.method,
        reasons=reasons,
    )


def find_build(torch: str, variant: str, index: str, arch: str, python: str) -> Build | None:
    """Return the listed build of this name; None if the catalogue does not have it."""
    for row in builds():
        if (row.torch, row.variant, row.index, row.arch) == (torch, variant, index, arch):
            return build_of(row, python)
    return None


def _ranked_releases(wish: str) -> dict[str, int]:
    """Return the releases that answer the wish, each with its rank, 0 the best."""
    order = [release.torch for release in releases()]
    if wish == "latest":
        ranked = order[::-1]
    elif wish:
        ranked = [torch for torch in order[::-1] if torch == wish or torch.startswith(wish + ".")]
        if not ranked:
            raise UsageError(
                f"torch {wish} is not in the catalogue",
                needs=f"one of: {', '.join(order)}; or latest",
                mend=f"torchdeck stacks --torch {_nearest(wish, order)}",
            )
    else:
        reference = order.index(REFERENCE)
        ranked = sorted(order, key=lambda torch: (abs(order.index(torch) - reference), -order.index(torch)))
    return {torch: rank for rank, torch in enumerate(ranked)}


def _nearest(wish: str, order: list[str]) -> str:
    """Return the listed release of the same minor version, else the newest that is not newer, else the oldest."""
    numbers = version_tuple(wish)
    same = [torch for torch in order if version_tuple(torch)[:2] == numbers[:2]]
    older = [torch for torch in order if version_tuple(torch) <= numbers]
    return (same or older or order[:1])[-1]


def _check_variant(variant: str, ranks: dict[str, int]) -> None:
    """Refuse a variant that none of the asked releases was ever built for."""
    known = sorted({row.variant for row in builds() if row.torch in ranks})
    if variant and variant not in known:
        asked = next(iter(ranks)) if len(ranks) == 1 else "torch"
        raise UsageError(
            f"{asked} has no {variant} build", needs=f"one of: {', '.join(known)}", mend="torchdeck stacks --torch 2.6"
        )


def _unfit_wish(row: BuildRow, ranks: dict[str, int], release_wish: str, variant_wish: str) -> No | None:
    if row.torch not in ranks:
        return "not-asked", f"is not the {release_wish} that was asked for"
    if variant_wish and row.variant != variant_wish:
        return "not-asked", f"is not the {variant_wish} build that was asked for"
    return None


def _unfit_reach(row: BuildRow, unreachable: frozenset[str]) -> No | None:
    """A CPU build has a stand-in on PyPI for the same architecture, so its index need not be reached."""
    if row.index not in unreachable or (row.variant == "cpu" and _stand_in(row) is not None):
        return None
    return "index-unreachable", f"would fit, but the index {row.index} cannot be reached from here"


def _stand_in(row: BuildRow) -> BuildRow | None:
    same = [other for other in builds() if (other.torch, other.arch, other.index) == (row.torch, row.arch, PYPI)]
    return same[0] if same else None


def _preference(row: BuildRow, ranks: dict[str, int], request: StackRequest) -> tuple[object, ...]:
    full = True
    if row.cuda and isinstance(request.driver, str):
        full = version_tuple(request.driver) >= version_tuple(cuda_of(row.cuda).bundled)
    newest_cuda = [-number for number in version_tuple(row.cuda)] if row.cuda else [0]
    return ranks[row.torch], row.index != PYPI, not full, newest_cuda


def _less_preferred(row: BuildRow, best: BuildRow | None) -> No:
    assert best is not None
    if row.torch != best.torch:
        return "not-preferred", f"fits too, but torch {best.torch} is nearer to what was asked for"
    return "not-preferred", f"fits too, but {best.variant} of the same release comes first"


def _installed(best: BuildRow, chosen: Build, python: str | Missing, unreachable: frozenset[str]) -> Build:
    if best.index not in unreachable:
        return chosen
    stand_in = _stand_in(best)
    assert stand_in is not None
    reason = (
        f"the index {best.index} cannot be reached: PyPI's {stand_in.variant} build of torch {best.torch} is installed "
        "instead, which is larger and computes the same on the CPU"
    )
    return build_of(stand_in, python, (reason,))


def _reasons(
    best: BuildRow, ranks: dict[str, int], request: StackRequest, wish: str, rejected: list[Rejection]
) -> tuple[str, ...]:
    reasons = [_why_release(best, ranks, wish, rejected)]
    if request.driver is None:
        reasons.append("no NVIDIA driver: it computes on the CPU")
    elif best.variant != "cpu":
        reasons.append(_why_driver(best, request.driver))
        reasons += _why_gpus(best, request)
    return tuple(reason for reason in reasons if reason)


def _why_release(best: BuildRow, ranks: dict[str, int], wish: str, rejected: list[Rejection]) -> str:
    first = next(iter(ranks))
    if best.torch == first:
        if wish == "latest":
            return f"{best.torch} is the newest release in the catalogue"
        return f"torch {wish} was asked for" if wish else f"{best.torch} is the reference release, and it runs here"
    # The builds of the preferred release for this architecture, if there are any, say why it is not taken.
    reasons = [row for row in rejected if row.torch == first and row.arch == best.arch and row.variant != "cpu"]
    reasons = reasons or [row for row in rejected if row.torch == first and row.arch == best.arch]
    why = f": {first}+{reasons[0].variant} {reasons[0].reason}" if reasons else ""
    nearest = (
        "the newest" if wish == "latest" else f"the nearest to {first}" if wish else "the nearest to the reference"
    )
    return f"{best.torch} is {nearest} that fits{why}"


def _why_driver(best: BuildRow, driver: str | Missing | None) -> str:
    cuda = cuda_of(best.cuda)
    if not isinstance(driver, str):
        return f"the driver is not known and was not checked: it must be at least {cuda.floor}"
    if version_tuple(driver) >= version_tuple(cuda.bundled):
        return f"driver {driver} has everything that CUDA {best.cuda} uses ({cuda.bundled} or newer)"
    return f"driver {driver} runs CUDA {best.cuda} (floor {cuda.floor}); {cuda.bundled} or newer is recommended"


def _why_gpus(best: BuildRow, request: StackRequest) -> list[str]:
    if isinstance(request.ccs, Missing):
        return ["the GPU is not known and was not checked"]
    targets = gpu_targets()[best.targets]
    return [f"the GPU {sm(cc)} runs its {code_for(targets, cc)} code" for cc in request.ccs]
