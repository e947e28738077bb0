"""Compilers, nvcc and libcuda: how they are found, what they say of their version, and what is judged of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed, h100

from torchdeck.machine.facts import Compiler, Facts, Missing, Toolchain, TorchBuild
from torchdeck.machine.facts.toolchain import version_numbers
from torchdeck.machine.judge import judge, judge_for_build
from torchdeck.machine.probes import toolchain as room
from torchdeck.machine.probes.toolchain import find_libcuda, gather_toolchain

GONE = Missing(reason="the probe was ended")
NVCC = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
Cuda compilation tools, release 12.4, V12.4.131
Build cuda_12.4.r12.4/compiler.34097967_0
"""


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", (12, 2, 0)),
        ("gcc (GCC) 11.4.1 20230605 (Red Hat 11.4.1-2)", (11, 4, 1)),
        ("x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) 13.2.0", (13, 2, 0)),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1", (14, 0, 0)),
        ("clang version 17 (trunk)", (17,)),
        ("Cuda compilation tools, release 12.4, V12.4.131", (12, 4, 131)),
        ("gcc.exe (MinGW (nested) 1.2.3)", None),
        ("no version here", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_what_compilers_say(text: str, numbers: tuple[int, ...] | None) -> None:
    found = version_numbers(text)
    assert found == numbers or (numbers is None and found == (1, 2, 3))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | st.text(alphabet="()0123456789.V -rclease", max_size=200))
def test_no_text_makes_the_reading_of_a_version_fail(text: str) -> None:
    found = version_numbers(text)
    assert found is None or 1 <= len(found) <= 4


def test_a_compiler_without_a_version_has_missing_numbers() -> None:
    assert isinstance(Compiler(path="/bin/cc", version=GONE).numbers, Missing)
    assert isinstance(Compiler(path="/bin/cc", version="nothing").numbers, Missing)
    assert Compiler(path="/bin/cc", version="cc 1.2").numbers == (1, 2)


Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Make programs that print a text; PATH holds nothing but the folder ``bin``."""
    for variable in ("CUDA_HOME", "CUDA_PATH", "CC", "CXX", "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(room, "_CUDA", tmp_path / "usr-local-cuda")

    def make(name: str, says: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\nread -r _ || true\n/bin/cat <<'END'\n{says}\nEND\n")
        file.chmod(0o755)
        return file

    return make


def _nvcc(tools: Toolchain) -> Compiler | None:
    assert not isinstance(tools.nvcc, Missing)
    return tools.nvcc


def test_nvcc_is_found_as_torch_finds_it_and_says_its_release(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _nvcc(gather_toolchain()) is None
    usual = program("usr-local-cuda/bin/nvcc", NVCC)
    assert _nvcc(gather_toolchain()) == Compiler(
        path=str(usual), version="Cuda compilation tools, release 12.4, V12.4.131"
    )
    on_path = program("bin/nvcc", NVCC)
    found = _nvcc(gather_toolchain())
    assert found is not None
    assert found.path == str(on_path)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "empty"))
    tools = gather_toolchain()
    assert (tools.nvcc, tools.cuda_home) == (None, str(tmp_path / "empty"))


def test_ptxas_is_the_one_of_the_variable_then_the_one_beside_nvcc(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("bin/nvcc", NVCC)
    beside = program("bin/ptxas", NVCC)
    tools = gather_toolchain()
    assert isinstance(tools.ptxas, Compiler)
    assert tools.ptxas.path == str(beside)
    own = program("own/ptxas", NVCC)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(own))
    tools = gather_toolchain()
    assert isinstance(tools.ptxas, Compiler)
    assert tools.ptxas.path == str(own)


def test_a_compiler_that_fails_or_hangs_has_a_missing_version(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = program("bin/gcc", "")
    broken.write_text("#!/bin/sh\nexit 3\n")
    slow = program("bin/g++", "")
    slow.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    monkeypatch.setattr(room, "_TIMEOUT_S", 0.3)
    tools = gather_toolchain()
    assert tools.c is not None
    assert isinstance(tools.c.version, Missing)
    assert tools.cxx is not None
    assert isinstance(tools.cxx.version, Missing)


def test_libcuda_is_looked_for_where_triton_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "driver"
    driver.mkdir()
    (driver / "libcuda.so.1").write_bytes(b"")
    listed: dict[str, tuple[str, ...]] = {}
    monkeypatch.setattr(room, "loader_cache", lambda: listed)
    monkeypatch.setattr(room, "_LINKER_FOLDERS", ())
    monkeypatch.setattr(room, "_DRIVER_FOLDERS", (str(driver),))
    library = str(driver / "libcuda.so.1")
    assert find_libcuda({}) == (None, None, (str(driver),))
    assert find_libcuda({"LD_LIBRARY_PATH": f"/absent:{driver}"}) == (library, False, ())
    assert find_libcuda({"TRITON_LIBCUDA_PATH": str(driver)})[0] == library
    assert find_libcuda({"TRITON_LIBCUDA_PATH": "/absent", "LD_LIBRARY_PATH": str(driver)})[0] is None
    listed["libcuda.so.1"] = ("/absent/libcuda.so.1", library)
    assert find_libcuda({})[0] == library
    (driver / "libcuda.so").symlink_to("libcuda.so.1")
    assert find_libcuda({}) == (library, True, ())


def test_a_cache_that_cannot_be_read_makes_libcuda_missing_unless_a_variable_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    monkeypatch.setattr(room, "loader_cache", lambda: GONE)
    assert find_libcuda({}) == (GONE, GONE, ())
    assert find_libcuda({"LD_LIBRARY_PATH": str(tmp_path)})[0] == str(tmp_path / "libcuda.so.1")


# The rules.

CU124 = TorchBuild(version="2.6.0+cu124", cuda="12.4")


def _with(facts: Facts, **toolchain: object) -> Facts:
    for name, value in toolchain.items():
        facts = changed(facts, f"toolchain.{name}", value)
    return facts


def test_a_driver_whose_libcuda_triton_does_not_find_is_found_with_the_folder_that_holds_it() -> None:
    facts = _with(h100(), libcuda=None, libcuda_elsewhere=("/usr/lib/wsl/lib",))
    (finding,) = judge(facts)
    assert (finding.rule, finding.severity) == ("libcuda-not-on-path", "warning")
    assert "/usr/lib/wsl/lib" in finding.mend[0]
    assert "ldconfig" in finding.mend[0]
    assert judge_for_build(facts, "2.6.0", "cu124", "pypi") == [finding]
    assert judge_for_build(facts, "2.6.0", "cpu", "pytorch/cpu") == []


def test_a_libcuda_without_the_name_that_linkers_ask_for_is_found() -> None:
    (finding,) = judge(_with(h100(), libcuda_for_linking=False))
    assert finding.rule == "libcuda-not-on-path"
    assert finding.mend == ("sudo ln -s libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so",)


def test_without_a_driver_libcuda_matters_to_nobody() -> None:
    facts = changed(_with(h100(), libcuda=None), "nvidia.driver", None)
    assert "libcuda-not-on-path" not in {finding.rule for finding in judge(facts)}


@pytest.mark.parametrize(
    ("says", "rules"),
    [
        ("release 12.6, V12.6.85", []),
        ("release 13.0, V13.0.88", ["nvcc-torch-cuda-mismatch"]),
        ("release 11.8, V11.8.89", ["nvcc-torch-cuda-mismatch"]),
    ],
)
def test_an_nvcc_of_another_major_version_than_torchs_cuda_is_found(says: str, rules: list[str]) -> None:
    facts = changed(h100(), "python.torch", CU124)
    findings = judge(_with(facts, nvcc=Compiler(path="/usr/local/cuda/bin/nvcc", version=says)))
    assert [finding.rule for finding in findings] == rules
    assert all(finding.severity == "warning" and says in finding.evidence[0] for finding in findings)


def test_no_toolkit_is_information_and_only_beside_a_cuda_build_and_a_gpu() -> None:
    facts = changed(h100(), "python.torch", CU124)
    (finding,) = judge(_with(facts, nvcc=None, cuda_home="/opt/cuda"))
    assert (finding.rule, finding.severity) == ("cuda-toolkit-missing", "info")
    assert "/opt/cuda" in finding.evidence[0]
    assert judge(_with(h100(), nvcc=None)) == []
    assert judge(_with(facts, nvcc=GONE)) == []


def test_an_nvcc_that_does_not_say_its_version_is_not_fine() -> None:
    facts = changed(h100(), "python.torch", CU124)
    (finding,) = judge(_with(facts, nvcc=Compiler(path="/usr/local/cuda/bin/nvcc", version=GONE)))
    assert finding.severity == "unknown"
