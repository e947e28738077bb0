"""The probes on this machine and on simulated parts of one."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from torchdeck.machine.facts import Driver, Missing
from torchdeck.machine.probes import nvml, storage
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.python import gather_python
from torchdeck.machine.probes.system import gather_system
from torchdeck.machine.probes.toolchain import gather_toolchain

_PROC_TEXT = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
_OPEN_TEXT = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@host)\n"


def test_a_probe_that_hangs_is_missing_after_its_time() -> None:
    started = time.monotonic()
    value = bounded(lambda: time.sleep(5), what="the slow one", timeout_s=0.1)
    assert isinstance(value, Missing)
    assert "did not answer" in value.reason
    assert time.monotonic() - started < 2


def test_a_probe_that_fails_is_missing_with_its_error() -> None:
    value = bounded(lambda: 1 / 0, what="the broken one", timeout_s=1)
    assert isinstance(value, Missing)
    assert "ZeroDivisionError" in value.reason


@pytest.mark.parametrize(("text", "version"), [(_PROC_TEXT, "550.54.15"), (_OPEN_TEXT, "580.95.05")])
def test_without_nvml_the_driver_is_read_from_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: str
) -> None:
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(nvml, "_PROC", tmp_path / "version")
    monkeypatch.setattr(nvml, "_can_load", lambda: False)
    found = nvml.gather_nvidia()
    assert isinstance(found.driver, Driver)
    assert found.driver.version == version
    assert isinstance(found.gpus, Missing)


def test_nvidia_display_controllers_are_counted_on_the_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (vendor, kind) in enumerate([("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x8086", "0x030000")]):
        device = tmp_path / f"0000:0{number}:00.0"
        device.mkdir()
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
    monkeypatch.setattr(nvml, "_PCI", tmp_path)
    assert nvml.gather_nvidia().num_pci == 1


def test_this_python_is_described_like_any_other_of_the_same_path() -> None:
    here, asked = gather_python(), gather_python(Path(sys.executable))
    assert not isinstance(here, Missing)
    assert here == asked


def test_a_python_that_does_not_run_is_missing_with_its_last_words(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no such interpreter >&2\nexit 3\n")
    fake.chmod(0o755)
    found = gather_python(fake)
    assert isinstance(found, Missing)
    assert "no such interpreter" in found.reason


@pytest.mark.parametrize(
    ("text", "version", "cuda"),
    [
        ("__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\n", "2.6.0+cu124", "12.4"),
        ("__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n", "2.6.0+cpu", None),
    ],
)
def test_torch_is_read_from_its_files_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: str, cuda: str | None
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(text)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    found = gather_python()
    assert not isinstance(found, Missing)
    assert not isinstance(found.torch, Missing)
    assert found.torch is not None
    assert (found.torch.version, found.torch.cuda) == (version, cuda)
    assert "torch" not in sys.modules


def test_a_place_that_is_not_there_yet_is_measured_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "not" / "yet"))
    found = storage.gather_storage().data
    assert not isinstance(found, Missing)
    assert not found.exists
    assert found.writable
    assert found.free_bytes > 0


def test_the_compiler_that_a_variable_names_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mycc"
    own.write_text("#!/bin/sh\necho mycc 1.0\n")
    own.chmod(0o755)
    monkeypatch.setenv("CC", str(own))
    found = gather_toolchain().c
    assert found is not None
    assert (found.path, found.version) == (str(own), "mycc 1.0")


def test_without_any_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    found = gather_toolchain()
    assert (found.c, found.cxx) == (None, None)


def test_the_system_names_its_processor() -> None:
    import platform

    assert gather_system().arch == platform.machine()
