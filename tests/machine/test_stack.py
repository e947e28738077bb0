"""The resolver, against an oracle that knows nothing of how it is written, and against single cases by name."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdeck.errors import UsageError
from torchdeck.machine.catalogue import BuildRow, builds, gpu_targets, releases
from torchdeck.machine.facts import Missing
from torchdeck.machine.records import StackReport
from torchdeck.machine.stack import StackRequest, listed_releases, resolve_reachable, resolve_stack
from torchdeck.machine.stack.failure import no_stack

UNKNOWN = Missing(reason="not told")
ORDER = [release.torch for release in releases()]
FLOOR = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580,)}
BUNDLED = {
    "cu118": (520, 61, 5), "cu121": (530, 30, 2), "cu124": (550, 54, 15), "cu126": (560, 35, 5),
    "cu128": (570, 124, 6), "cu129": (575, 57, 8), "cu130": (580, 95, 5), "cu132": (595, 71, 5),
}  # fmt: skip
TEGRA = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7)}

drivers = st.one_of(
    st.none(),
    st.just(UNKNOWN),
    st.sampled_from(["440.33.01", "450.80.02", "470.82.01", "520.61.05", "525.60.12", "525.60.13", "535.104.05",
                     "550.54.14", "550.54.15", "560.35.05", "570.124.06", "579.99", "580",
                     "580.95.05", "595.71.05", "700.1"]),
    st.tuples(st.integers(390, 700), st.integers(0, 200)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
)  # fmt: skip
capabilities = st.sampled_from(
    [(3, 5), (3, 7), (5, 0), (5, 2), (5, 3), (6, 1), (7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0),
     (10, 0), (10, 3), (11, 0), (12, 0), (12, 1), (13, 0)]
)  # fmt: skip
gpus = st.one_of(st.just(UNKNOWN), st.lists(capabilities, max_size=3, unique=True).map(tuple))
pythons = st.one_of(st.just(UNKNOWN), st.sampled_from([f"3.{minor}" for minor in range(6, 17)]))
arches = st.sampled_from(["x86_64", "aarch64", "ppc64le"])
wishes = st.sampled_from(["", "latest", "2", "2.6", "2.6.0", "2.7", "2.10", "2.15.0", "2.6-cpu", "2.6-cu124",
                          "2.6+cu118", "2.7-cu128", "latest-cpu", "cpu", "2.11-cu130"])  # fmt: skip
indexes = st.frozensets(st.sampled_from(sorted({row.index for row in builds()} - {"pypi"})))


def requests() -> st.SearchStrategy[StackRequest]:
    return st.builds(StackRequest, driver=drivers, ccs=gpus, python=pythons, arch=arches, torch=wishes)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def oracle_fits(row: BuildRow, request: StackRequest, asked_variant: str) -> bool:
    """Say whether a build fits, from the rules of the design alone."""
    first, last = row.pythons or next(release.pythons for release in releases() if release.torch == row.torch)
    if row.arch != request.arch:
        return False
    if request.python != UNKNOWN and not numbers(first) <= numbers(str(request.python)) <= numbers(last):
        return False
    if request.driver is None:
        return row.variant == "cpu" or bool(asked_variant)
    if row.variant == "cpu":
        return bool(asked_variant)
    if request.driver != UNKNOWN and numbers(str(request.driver)) < FLOOR[int(row.variant[2:-1])]:
        return False
    held = gpu_targets()[row.targets]
    for cc in () if isinstance(request.ccs, Missing) else request.ccs:
        own = cc in held.binary
        same_major = any(b[0] == cc[0] and b[1] <= cc[1] for b in held.binary if b not in TEGRA)
        jit = any(p <= cc for p in held.ptx)
        if not (own or (cc not in TEGRA and (same_major or jit))):
            return False
    return True


def oracle_choice(request: StackRequest, unreachable: frozenset[str]) -> tuple[str, str, str] | None:
    """Return the best build by trying them all."""
    match = re.fullmatch(r"(latest|[\d.]+)?[-+]?(cpu|cu\d+)?", request.torch)
    assert match
    release, variant = match[1] or "", match[2] or ""
    best = None
    for row in builds():
        if variant and row.variant != variant:
            continue
        if release not in ("", "latest") and not (row.torch + ".").startswith(release + "."):
            continue
        if not oracle_fits(row, request, variant):
            continue
        replaced = row.variant == "cpu" and any(
            (other.torch, other.arch, other.index) == (row.torch, row.arch, "pypi") for other in builds()
        )
        if row.index in unreachable and not replaced:
            continue
        place = ORDER.index(row.torch)
        distance = abs(place - ORDER.index("2.6.0")) if release == "" else 0
        full = (
            row.variant == "cpu"
            or not isinstance(request.driver, str)
            or numbers(request.driver) >= BUNDLED[row.variant]
        )
        cuda = 0 if row.variant == "cpu" else int(row.variant[2:])
        key = (distance, -place, row.index != "pypi", not full, -cuda)
        if best is None or key < best[0]:
            best = (key, (row.torch, row.variant, row.index))
    return best[1] if best else None


@settings(max_examples=1500, deadline=None)
@given(requests(), indexes)
def test_the_chosen_build_is_the_one_that_trying_all_of_them_finds(
    request: StackRequest, unreachable: frozenset[str]
) -> None:
    try:
        report = resolve_stack(request, unreachable)
    except UsageError as error:
        assert "has no" in error.title  # a variant that no release of the wish was built for
        return
    found = report.chosen and (report.chosen.torch, report.chosen.variant, report.chosen.index)
    assert found == oracle_choice(request, unreachable)


@settings(max_examples=300, deadline=None)
@given(requests(), indexes)
def test_every_build_is_either_chosen_or_rejected_with_a_reason(
    request: StackRequest, unreachable: frozenset[str]
) -> None:
    try:
        report = resolve_stack(request, unreachable)
    except UsageError:
        return
    rows = [(row.torch, row.variant, row.index, row.arch) for row in builds()]
    seen = [(row.torch, row.variant, row.index, row.arch) for row in report.rejected]
    if report.chosen is not None:
        seen.append((report.chosen.torch, report.chosen.variant, report.chosen.index, report.chosen.arch))
        assert report.chosen.reasons
        assert report.installed is not None
        assert report.installed.index not in unreachable
        assert report.installed.torch == report.chosen.torch
        if report.chosen.variant != "cpu":
            assert msgspec.structs.replace(report.installed, reasons=()) == msgspec.structs.replace(
                report.chosen, reasons=()
            )
    assert sorted(seen) == sorted(rows)
    assert all(row.code and row.reason for row in report.rejected)


@settings(max_examples=300, deadline=None)
@given(requests(), indexes)
def test_asking_which_indexes_answer_gives_what_knowing_it_beforehand_gives(
    request: StackRequest, unreachable: frozenset[str]
) -> None:
    try:
        known = resolve_stack(request, unreachable)
        asked = resolve_reachable(request, lambda index: index not in unreachable)
    except UsageError:
        return
    assert (asked.chosen and asked.chosen.index) == (known.chosen and known.chosen.index)
    assert (asked.installed and asked.installed.variant) == (known.installed and known.installed.variant)


def resolve(
    driver: object, cc: object, python: str = "3.11", arch: str = "x86_64", torch: str = "", away: str = ""
) -> StackReport:
    """Resolve in one line; ``away`` is "all" where none of PyTorch's own indexes can be reached."""
    ccs = cc if isinstance(cc, Missing) else (cc,) if cc else ()
    request = StackRequest(driver=driver, ccs=ccs, python=python, arch=arch, torch=torch)  # type: ignore[arg-type]
    return resolve_reachable(request, lambda index: away != "all")


def chosen(report: StackReport) -> tuple[str, str, str] | None:
    return report.chosen and (report.chosen.torch, report.chosen.variant, report.chosen.index)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("550.54.15", (9, 0)), ("2.6.0", "cu124", "pypi")),
        (("535.104.05", (8, 9)), ("2.6.0", "cu124", "pypi")),
        (("525.60.13", (7, 0)), ("2.6.0", "cu124", "pypi")),
        (("525.60.12", (7, 0)), ("2.6.0", "cu118", "pytorch/cu118")),
        (("470.223.02", (3, 7)), ("2.6.0", "cu118", "pytorch/cu118")),
        (("570.124.06", (12, 0)), ("2.7.1", "cu128", "pytorch/cu128")),
        (("580.95.05", (10, 3)), ("2.7.1", "cu128", "pytorch/cu128")),
        (("580.95.05", (9, 0), "3.12", "aarch64"), ("2.11.0", "cu130", "pypi")),
        (("580.95.05", (12, 1), "3.12", "aarch64"), ("2.11.0", "cu130", "pypi")),
        (("580.95.05", (11, 0), "3.12", "aarch64"), ("2.11.0", "cu130", "pypi")),
        (("550.54.15", (9, 0), "3.14"), ("2.9.1", "cu128", "pypi")),
        (("595.71.05", (9, 0), "3.15"), ("2.15.0", "cu132", "pypi")),
        (("550.54.15", (9, 0), "3.8"), ("2.4.1", "cu121", "pypi")),
        ((None, None), ("2.6.0", "cpu", "pytorch/cpu")),
        ((None, (9, 0)), ("2.6.0", "cpu", "pytorch/cpu")),
        ((None, None, "3.12", "aarch64"), ("2.6.0", "cpu", "pypi")),
        (("580.95.05", (7, 0), "3.11", "x86_64", "latest"), ("2.14.1", "cu126", "pytorch/cu126")),
        (("580.95.05", (9, 0), "3.11", "x86_64", "latest"), ("2.15.0", "cu132", "pypi")),
        (("550.54.15", (9, 0), "3.11", "x86_64", "2.6-cu126"), ("2.6.0", "cu126", "pytorch/cu126")),
        (("550.54.15", (9, 0), "3.11", "x86_64", "2.6-cpu"), ("2.6.0", "cpu", "pytorch/cpu")),
        (("450.80.01", (8, 0)), None),
        (("535.104.05", (3, 5)), None),
        (("580.95.05", (8, 7), "3.12", "aarch64"), None),
        (("560.35.05", (9, 0), "3.12", "aarch64"), None),
        (("550.54.15", (9, 0), "3.7"), None),
        (("550.54.15", (9, 0), "3.11", "ppc64le"), None),
        (("550.54.15", (9, 0), "3.14", "x86_64", "2.6"), None),
    ],
)
def test_known_machines_get_the_build_that_the_published_facts_say(
    arguments: tuple[object, ...], expected: tuple[str, str, str] | None
) -> None:
    assert chosen(resolve(*arguments)) == expected  # type: ignore[arg-type]


def test_a_driver_that_needs_cu118_never_gets_cu124_when_that_index_is_out_of_reach() -> None:
    report = resolve("470.82.01", (8, 0), away="all")
    assert report.chosen is None
    assert report.installed is None
    assert report.wanted is not None
    assert report.wanted.variant == "cu118"
    assert "pytorch/cu118" in report.unreachable
    assert no_stack(report).exit_code == 4
    assert no_stack(report).rule == "index-unreachable"


def test_blackwell_goes_on_to_the_next_release_on_pypi_when_the_nearer_one_is_out_of_reach() -> None:
    report = resolve("580.95.05", (12, 0), away="all")
    assert chosen(report) == ("2.8.0", "cu128", "pypi")
    assert report.wanted is not None
    assert (report.wanted.torch, report.wanted.variant) == ("2.7.1", "cu128")


def test_on_a_cpu_machine_pypis_cuda_build_stands_in_for_the_cpu_build_and_says_so() -> None:
    report = resolve(None, None, away="all")
    assert chosen(report) == ("2.6.0", "cpu", "pytorch/cpu")
    assert report.installed is not None
    assert (report.installed.torch, report.installed.variant, report.installed.index) == ("2.6.0", "cu124", "pypi")
    assert "cu124" in report.installed.reasons[0]


def test_no_driver_and_reachable_indexes_install_the_cpu_build_itself() -> None:
    report = resolve(None, None)
    assert report.installed is not None
    assert report.installed.variant == "cpu"


def test_the_reason_names_why_the_reference_was_not_taken() -> None:
    report = resolve("580.95.05", (12, 0))
    assert report.chosen is not None
    assert "2.6.0+cu124 holds code for sm_50 to sm_90" in report.chosen.reasons[0]


def test_the_chosen_build_carries_the_fields_that_programs_read() -> None:
    report = resolve("550.54.15", (9, 0))
    assert report.chosen is not None
    document = msgspec.to_builtins(report)
    assert document["schema"] == "torchdeck.stacks/1"
    expected = {"torch": "2.6.0", "cuda": "12.4", "variant": "cu124", "cudnn": "9.1.0.70", "nccl": "2.21.5",
                "triton": "3.2.0", "driver_floor": "525.60.13", "driver_recommended": "550.54.15", "index": "pypi",
                "torchvision": "0.21.0", "torchaudio": "2.6.0"}  # fmt: skip
    assert {name: document["chosen"][name] for name in expected} == expected


def test_an_unlisted_release_is_a_usage_error_that_lists_the_releases() -> None:
    for wish in ("2.6.1", "1.13", "9.9", "2.7.0"):
        with pytest.raises(UsageError) as caught:
            resolve("550.54.15", (9, 0), torch=wish)
        assert "2.6.0" in caught.value.needs
        assert caught.value.exit_code == 2


def test_a_variant_that_was_never_built_is_a_usage_error_that_lists_the_variants() -> None:
    with pytest.raises(UsageError, match=r"2\.6\.0 has no cu999 build"):
        resolve("550.54.15", (9, 0), torch="2.6-cu999")


def test_where_nothing_fits_the_error_names_the_obstacle_and_a_mend() -> None:
    cases = {
        "driver-too-old": resolve("440.33.01", (7, 5)),
        "arch-dropped-from-wheel": resolve("535.104.05", (3, 5)),
        "python-unsupported": resolve("550.54.15", (9, 0), python="3.14", torch="2.6"),
        "leaves-gpu-idle": resolve("550.54.15", (9, 0), arch="aarch64", torch="2.6"),
        "architecture": resolve("550.54.15", (9, 0), arch="ppc64le"),
    }
    for rule, report in cases.items():
        error = no_stack(report)
        assert (error.rule, error.exit_code) == (rule, 1)
        assert error.found
        assert error.mend


def test_every_machine_that_2_6_0_serves_gets_2_6_0() -> None:
    for cc, python in itertools.product([(5, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0)], range(9, 14)):
        report = resolve("525.60.13", cc, python=f"3.{python}", away="all")
        assert chosen(report) == ("2.6.0", "cu124", "pypi")


def test_the_releases_are_listed_oldest_first() -> None:
    assert list(listed_releases()) == sorted(listed_releases(), key=numbers)


def test_a_companion_without_a_wheel_for_the_python_is_left_out() -> None:
    with_vision = resolve("550.54.15", (9, 0), python="3.12", torch="2.5")
    without = resolve("550.54.15", (9, 0), python="3.13", torch="2.5")
    assert with_vision.chosen is not None
    assert without.chosen is not None
    assert with_vision.chosen.torchvision == "0.20.1"
    assert without.chosen.torchvision is None


def test_pypis_arm_build_of_2_5_1_has_no_wheel_for_python_3_13() -> None:
    report = resolve(None, None, python="3.13", arch="aarch64", torch="2.5")
    assert report.chosen is None
    (row,) = [row for row in report.rejected if (row.torch, row.arch) == ("2.5.1", "aarch64")]
    assert row.code == "python-unsupported"
    assert resolve(None, None, python="3.12", arch="aarch64", torch="2.5").chosen is not None
