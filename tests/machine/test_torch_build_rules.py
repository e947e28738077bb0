"""What is said of an installed torch: each thing that can be wrong with it, alone, on an otherwise sound machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed, h100
from machine_site import PINS, about, package, torch

from torchdeck.machine.facts import Compiler, Facts, Gpu, Missing, TorchBuild, decode_facts, encode_facts
from torchdeck.machine.facts.python import Library, Package, Wheel
from torchdeck.machine.judge import judge
from torchdeck.machine.judge.companions import numbers
from torchdeck.machine.judge.cuda_wheels import satisfies
from torchdeck.machine.judge.torch_build import as_targets, judge_torch_build
from torchdeck.machine.probes.torch_build import gather_torch_build
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")
PATH = "/opt/env/bin/python"


def build(**changes: Any) -> TorchBuild:
    """A sound torch 2.6.0+cu124 with its companions."""
    values: dict[str, Any] = {
        "version": "2.6.0+cu124",
        "cuda": "12.4",
        "targets": tuple(f"sm_{number}" for number in (50, 60, 70, 75, 80, 86, 90)),
        "wheels": tuple(Wheel(name=name, wanted=f"=={version}", found=(version,)) for name, version in PINS.items()),
        "companions": (
            Package(name="numpy", version="2.1.0"),
            Package(name="torchvision", version="0.21.0+cu124", wants_torch="==2.6.0"),
            Package(name="torchaudio", version="2.6.0+cu124", wants_torch="==2.6.0"),
            Package(name="triton", version="3.2.0"),
        ),
        "libraries": (own("libcudnn.so.9"), own("libcudnn_ops.so.9"), own("libnccl.so.2"), own("libnvJitLink.so.12")),
        "compile_below": "3.14",
    }
    return TorchBuild(**{**values, **changes})


def own(soname: str, **changes: Any) -> Library:
    values: dict[str, Any] = {
        "soname": soname, "needed_by": "libtorch_cuda.so", "path": f"/site/{soname}", "via": "rpath",
        "own": f"/site/{soname}", "version": None,
    }  # fmt: skip
    return Library(**{**values, **changes})


def host(torch_build: TorchBuild | Missing | None, **python: Any) -> Facts:
    facts: Facts = changed(h100(), "python.torch", torch_build)
    facts = changed(
        facts, "toolchain.nvcc", Compiler(path="/usr/local/cuda/bin/nvcc", version="release 12.4, V12.4.131")
    )
    for name, value in {"path": PATH, **python}.items():
        facts = changed(facts, f"python.{name}", value)
    return facts


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    assert finding.evidence
    assert finding.mend or finding.severity == "unknown"
    assert not any("://" in text for text in finding.mend)
    return finding


def with_wheels(*wheels: Wheel) -> TorchBuild:
    names = {wheel.name for wheel in wheels}
    sound = build().wheels
    assert not isinstance(sound, Missing)
    return build(wheels=(*(wheel for wheel in sound if wheel.name not in names), *wheels))


def with_companion(name: str, version: str | None, **more: Any) -> TorchBuild:
    sound = build().companions
    assert not isinstance(sound, Missing)
    new = () if version is None else (Package(name=name, version=version, **more),)
    return build(companions=(*(found for found in sound if found.name != name), *new))


def test_a_sound_torch_has_no_findings_and_none_has_none_either() -> None:
    assert judge(host(build())) == []
    assert judge(host(None)) == []


def test_facts_with_an_installed_torch_survive_being_written_and_read() -> None:
    facts = host(build())
    assert decode_facts(encode_facts(facts), "x") == facts


def test_a_fact_file_from_before_these_facts_gets_no_finding_of_theirs() -> None:
    assert judge_torch_build(host(TorchBuild(version="2.6.0+cu124", cuda="12.4"))) == []


def test_a_torch_that_cannot_be_read_is_not_fine() -> None:
    assert only(judge(host(GONE))).severity == "unknown"


@pytest.mark.parametrize("path", ["wheels", "companions", "libraries", "compile_below"])
def test_a_fact_of_torch_that_is_missing_is_not_fine(path: str) -> None:
    finding = only(judge(host(build(**{path: GONE}))))
    assert (finding.severity, finding.evidence) == ("unknown", (GONE.reason,))


def test_targets_that_are_missing_matter_only_where_the_catalogue_does_not_know_them() -> None:
    assert judge(host(build(targets=GONE))) == []
    finding = only(
        judge(host(build(version="2.6.1+cu124", targets=GONE, companions=(Package(name="triton", version="3.2.0"),))))
    )
    assert (finding.rule, finding.severity) == ("arch-newer-than-wheel", "unknown")


def test_a_cpu_build_is_a_warning_only_where_driver_and_gpu_are() -> None:
    cpu = build(version="2.6.0+cpu", cuda=None, targets=None, libraries=None, wheels=(), companions=())
    finding = only(judge(host(cpu)))
    assert (finding.rule, finding.severity) == ("wheel-cpu-only", "warning")
    assert "H100" in finding.title
    assert finding.mend[0] == f"uv pip install --python {PATH} --torch-backend=auto --reinstall torch==2.6.0"
    for without in (changed(host(cpu), "nvidia.driver", None), changed(host(cpu), "nvidia.gpus", ())):
        assert "wheel-cpu-only" not in {found.rule for found in judge(without)}


def test_a_rocm_build_beside_an_nvidia_gpu_is_told_apart_from_a_cpu_build() -> None:
    rocm = build(version="2.6.0+rocm6.2.4", cuda=None, hip="6.2.41134", targets=None, libraries=None, wheels=())
    finding = only(judge_torch_build(host(rocm)))
    assert finding.rule == "wheel-cpu-only"
    assert "ROCm" in finding.title


def test_an_unlisted_build_is_judged_by_the_gpu_code_in_its_files() -> None:
    gpu = Gpu(index=0, name="NVIDIA GeForce RTX 5090", cc=(12, 0), memory_bytes=34_000_000_000)
    facts = changed(host(build(version="2.6.1+cu124")), "nvidia.gpus", (gpu,))
    finding = next(found for found in judge_torch_build(facts) if found.rule.startswith("arch"))
    assert (finding.rule, finding.severity) == ("arch-newer-than-wheel", "error")
    assert "libtorch_python.so" in finding.evidence[0]
    with_ptx = build(version="2.6.1+cu124", targets=("sm_80", "sm_90", "compute_90"))
    assert not [found for found in judge_torch_build(changed(facts, "python.torch", with_ptx)) if "arch" in found.rule]


def test_an_unlisted_cuda_is_judged_without_failing() -> None:
    for cuda in ("12.3", "12", "x", "9.9.9", ""):
        judge_torch_build(host(build(cuda=cuda)))


def test_a_wheel_that_is_absent_is_an_error_with_the_command_that_brings_it() -> None:
    finding = only(judge(host(with_wheels(Wheel(name="nvidia-nccl-cu12", wanted="==2.21.5", found=())))))
    assert (finding.rule, finding.severity) == ("cuda-wheels-missing", "error")
    assert finding.mend == (f"uv pip install --python {PATH} nvidia-nccl-cu12==2.21.5",)


def test_in_a_deck_the_mend_is_its_repair() -> None:
    facts = host(with_wheels(Wheel(name="nvidia-nccl-cu12", wanted="==2.21.5", found=())), deck="digits")
    assert only(judge(facts)).mend == ("torchdeck up --name digits --repair",)


@pytest.mark.parametrize("found", [("9.5.1.17",), ("9.1.0.70", "9.5.1.17")])
def test_a_drifted_or_double_wheel_is_a_warning_that_names_both_versions(found: tuple[str, ...]) -> None:
    finding = only(judge(host(with_wheels(Wheel(name="nvidia-cudnn-cu12", wanted="==9.1.0.70", found=found)))))
    assert (finding.rule, finding.severity) == ("cuda-wheels-mixed", "warning")
    assert "9.1.0.70" in finding.evidence[0]
    assert "9.5.1.17" in finding.evidence[0]
    assert "--reinstall nvidia-cudnn-cu12==9.1.0.70" in finding.mend[0]


@pytest.mark.parametrize(
    ("name", "rule", "severity"),
    [
        ("nvidia-nccl-cu13", "nccl-lib-shadowed", "warning"),
        ("nvidia-cudnn-cu13", "cuda-wheels-mixed", "warning"),
        ("nvidia-nvjitlink", "cuda-wheels-mixed", "info"),
    ],
)
def test_a_library_for_two_cudas_is_grave_only_where_both_write_the_same_files(
    name: str, rule: str, severity: str
) -> None:
    finding = only(judge(host(with_wheels(Wheel(name=name, wanted=None, found=("13.1",))))))
    assert (finding.rule, finding.severity) == (rule, severity)
    assert finding.mend[0] == f"uv pip uninstall --python {PATH} {name}"


def test_a_library_that_torch_does_not_ask_for_is_nobodys_business() -> None:
    assert judge(host(with_wheels(Wheel(name="nvidia-nvjpeg-cu12", wanted=None, found=("12.3",))))) == []


@pytest.mark.parametrize(
    ("soname", "rule"),
    [
        ("libcudnn_ops.so.9", "cudnn-shadowed"),
        ("libnccl.so.2", "nccl-lib-shadowed"),
        ("libnvJitLink.so.12", "cuda-lib-shadowed"),
    ],
)
@pytest.mark.parametrize("via", ["LD_LIBRARY_PATH", "LD_PRELOAD", "ld.so.cache"])
def test_a_library_of_another_installation_is_named_with_the_way_it_comes(soname: str, rule: str, via: str) -> None:
    taken = own(soname, path=f"/usr/lib/{soname}", via=via, version="9.8.0")
    sound = build().libraries
    assert isinstance(sound, tuple)
    others = tuple(library for library in sound if library.soname != soname)
    finding = only(judge(host(build(libraries=(*others, taken)))))
    assert (finding.rule, finding.severity) == (rule, "warning")
    assert f"/usr/lib/{soname}" in finding.evidence[0]
    assert "9.8.0" in finding.evidence[0]
    assert (finding.mend[0] == f"unset {via}") is via.startswith("LD_")


def test_a_library_without_a_copy_of_torchs_own_is_not_shadowed() -> None:
    assert judge(host(build(libraries=(own("libcudnn.so.9", own=None, via="ld.so.cache"),)))) == []


@pytest.mark.parametrize(
    ("name", "version", "more", "evidence"),
    [
        ("torchvision", "0.22.1+cu126", {"wants_torch": "==2.7.1"}, "==2.7.1"),
        ("torchvision", "0.19.0", {}, "0.21.0"),
        ("torchvision", "0.21.0+cpu", {"wants_torch": "==2.6.0"}, "+cpu"),
        ("torchaudio", "2.5.1", {"wants_torch": "==2.5.1"}, "==2.5.1"),
    ],
)
def test_a_companion_of_another_torch_is_found_by_its_metadata_the_catalogue_or_its_build(
    name: str, version: str, more: dict[str, Any], evidence: str
) -> None:
    finding = only(judge(host(with_companion(name, version, **more))))
    assert finding.rule == "torchvision-mismatch"
    assert evidence in finding.evidence[0]
    assert f"{name}==" in finding.mend[0]


def test_a_companion_whose_metadata_accepts_torch_is_fine_whatever_the_catalogue_pairs() -> None:
    assert judge(host(with_companion("torchvision", "0.29.1", wants_torch=">=2.6"))) == []


def test_numpy_2_matters_only_under_a_torch_from_before_it() -> None:
    old = build(version="2.2.2+cu121", cuda="12.1", companions=(Package(name="numpy", version="2.1.0"),))
    finding = next(found for found in judge(host(old)) if found.rule == "numpy2-abi")
    assert finding.mend == (f"uv pip install --python {PATH} 'numpy<2'",)
    old_numpy = build(version="2.2.2+cu121", cuda="12.1", companions=(Package(name="numpy", version="1.26.4"),))
    assert "numpy2-abi" not in {found.rule for found in judge(host(old_numpy))}


@pytest.mark.parametrize(
    ("mkl", "build_text", "bad"),
    [
        ("2024.1.0", "py3.11_cuda12.1_cudnn9.1.0_0", True),
        ("2025.0.1", "py3.10_cpu_0", True),
        ("2023.1.0", "py3.11_cuda12.1_cudnn9.1.0_0", False),
        ("2025.0.1", "cuda126_mkl_py311_h30b5a27_300", False),
        ("2025.0.1", None, False),
    ],
)
def test_a_new_mkl_breaks_only_the_conda_builds_of_pytorchs_own_channel(
    mkl: str, build_text: str | None, bad: bool
) -> None:
    sound = build().companions
    assert not isinstance(sound, Missing)
    extra = (Package(name="mkl", version=mkl), Package(name="torch", version="2.5.1", build=build_text))
    assert ("mkl-symbol-removed" in {found.rule for found in judge(host(build(companions=(*sound, *extra))))}) is bad


@pytest.mark.parametrize("version", [None, "3.3.1"])
def test_triton_that_is_absent_or_of_another_torch_is_found(version: str | None) -> None:
    finding = only(judge(host(with_companion("triton", version))))
    assert (finding.rule, finding.severity) == ("compile-triton-missing", "warning")
    assert "triton==3.2.0" in finding.mend[0]


@pytest.mark.parametrize(("version", "bad"), [("3.13.9", False), ("3.14.0", True), ("3.15.0a1", True)])
def test_a_python_that_torchs_own_code_refuses_to_compile_under_is_found(version: str, bad: bool) -> None:
    findings = judge_torch_build(host(build(), version=version))
    assert ([found.rule for found in findings] == ["compile-python-too-new"]) is bad


@pytest.mark.parametrize(
    ("version", "wanted", "met"),
    [
        ("13.0.3.0", "==13.0.3", True),
        ("13.1.1.3", "==13.1.1.3.*", True),
        ("3.9.2", "~=3.9.0", True),
        ("3.10.0", "~=3.9.0", False),
        ("9.1.0.70", "==9.1.0.70", True),
        ("9.1.0.71", "==9.1.0.70", False),
        ("2.6.0", "", True),
        ("no version", "==1", True),
        ("1.0", "not a wish", True),
    ],
)
def test_a_version_is_held_against_a_wish_as_pip_does(version: str, wanted: str, met: bool) -> None:
    assert satisfies(version, wanted) is met


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_version_and_no_target_makes_a_rule_fail(one: str, other: str) -> None:
    satisfies(one, other)
    assert all(number >= 0 for number in numbers(one))
    as_targets((one, other, f"sm_{one}", f"compute_{other}"))


@settings(max_examples=200, deadline=None)
@given(
    version=st.text(min_size=1, max_size=12) | st.from_regex(r"\A\d\.\d{1,2}(\.\d)?(\+cu\d{3})?\Z"),
    cuda=st.none() | st.text(max_size=6) | st.from_regex(r"\A1\d\.\d\Z"),
    found=st.lists(st.text(max_size=8), max_size=2),
    soname=st.text(max_size=12),
    companion=st.sampled_from(["torchvision", "numpy", "triton", "mkl", "torch"]),
)
def test_no_content_of_the_facts_makes_a_rule_fail(
    version: str, cuda: str | None, found: list[str], soname: str, companion: str
) -> None:
    strange = build(
        version=version, cuda=cuda, targets=(soname,), compile_below=version,
        wheels=(Wheel(name="nvidia-cudnn-cu12", wanted=version, found=tuple(found)),
                Wheel(name=soname, wanted=None, found=("1",))),
        companions=(Package(name=companion, version=version, wants_torch=cuda, build=version),),
        libraries=(own(soname, path=version, via=version),),
    )  # fmt: skip
    for finding in judge_torch_build(host(strange)):
        msgspec.json.encode(finding)


# From files to findings.


def findings_of(site: Path) -> dict[str, Finding]:
    read = gather_torch_build(about(site))
    assert isinstance(read, TorchBuild)
    # The pins of the small torch are fewer than a real one's; its libraries are those of this machine's loader.
    return {finding.rule: finding for finding in judge_torch_build(host(read))}


def test_a_whole_folder_of_packages_has_no_findings_and_each_damage_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert findings_of(torch(tmp_path / "whole")) == {}
    few = {name: PINS[name] for name in ("nvidia-cudnn-cu12", "nvidia-nvjitlink-cu12")}
    assert set(findings_of(torch(tmp_path / "few", installed=few))) == {"cuda-wheels-missing", "compile-triton-missing"}
    assert set(findings_of(torch(tmp_path / "drift", installed={**PINS, "nvidia-nccl-cu12": "2.18.1"}))) == {
        "cuda-wheels-mixed"
    }
    both = torch(tmp_path / "both")
    package(both, "nvidia-nccl-cu13", "2.28.9")
    package(both, "nvidia-cudnn-cu13", "9.19.0.56")
    assert set(findings_of(both)) == {"cuda-wheels-mixed", "nccl-lib-shadowed"}
    assert set(findings_of(torch(tmp_path / "cpu", "2.6.0+cpu", None))) == {"wheel-cpu-only"}


def test_a_folder_in_ld_library_path_is_found_by_what_it_would_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = torch(tmp_path / "site")
    (tmp_path / "other").mkdir()
    for file in (site / "nvidia").glob("*/lib/*"):
        (tmp_path / "other" / file.name).write_bytes(file.read_bytes())
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "other"))
    findings = findings_of(site)
    # libnvJitLink is not among them: the small torch loads its own beforehand, as 2.6.0 does.
    assert set(findings) == {"cudnn-shadowed"}
    assert "libcudnn_graph.so.9, libcudnn_ops.so.9" in findings["cudnn-shadowed"].title
