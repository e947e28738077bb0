"""The catalogue's rows agree with each other, and each says where it comes from."""

from __future__ import annotations

from torchdeck.machine.catalogue import REFERENCE, builds, cuda_of, gpu_targets, releases


def test_every_build_belongs_to_a_listed_release_and_to_known_gpu_code_and_cuda() -> None:
    listed = {release.torch for release in releases()}
    for row in builds():
        assert row.torch in listed
        assert row.arch in ("x86_64", "aarch64")
        assert row.index == "pypi" or row.index == f"pytorch/{row.variant}"
        if row.variant == "cpu":
            assert not row.targets
        else:
            assert row.targets in gpu_targets()
            assert cuda_of(row.cuda).floor


def test_every_row_has_a_source_and_a_date() -> None:
    for row in (*releases(), *builds(), *gpu_targets().values()):
        assert row.source
        assert len(row.date) == len("2026-12-01")


def test_no_build_is_listed_twice() -> None:
    keys = [(row.torch, row.variant, row.index, row.arch) for row in builds()]
    assert len(keys) == len(set(keys))


def test_each_release_has_exactly_one_build_on_pypi_for_each_processor() -> None:
    for release in releases():
        for arch in ("x86_64", "aarch64"):
            on_pypi = [row for row in builds() if (row.torch, row.arch, row.index) == (release.torch, arch, "pypi")]
            assert len(on_pypi) == 1
            assert on_pypi[0].method == "verified"


def test_the_reference_build_is_what_the_wheel_says() -> None:
    reference = next(row for row in builds() if (row.torch, row.index, row.arch) == (REFERENCE, "pypi", "x86_64"))
    assert (reference.variant, reference.cudnn, reference.nccl, reference.triton) == (
        "cu124", "9.1.0.70", "2.21.5", "3.2.0"
    )  # fmt: skip


def test_the_floor_of_a_cuda_release_is_not_newer_than_its_own_driver() -> None:
    for row in builds():
        if row.cuda:
            cuda = cuda_of(row.cuda)
            assert [int(part) for part in cuda.floor.split(".")] <= [int(part) for part in cuda.bundled.split(".")]
