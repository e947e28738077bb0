"""What the start costs: commands that do not train import nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "rich", "textual", "pynvml", "numpy", "playwright")
_PROGRAM = """
import json, sys
from torchdeck.cli import app
from torchdeck.cli.failure import guarded
code = guarded(app, sys.argv[1:])
print(json.dumps({"code": code, "modules": sorted({name.split(".")[0] for name in sys.modules})}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("doctor",), ("stacks", "--offline"), ("status",), ("config",)],
    ids=" ".join,
)
def test_a_command_that_does_not_train_imports_nothing_heavy(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    report = json.loads(done.stderr.strip().splitlines()[-1])
    assert report["code"] == 0
    # pynvml is needed, and may be imported, only where NVIDIA's library is.
    allowed = {"pynvml"} if arguments == ("doctor",) and _has_nvml() else set()
    assert [name for name in HEAVY if name in report["modules"] and name not in allowed] == []


def _has_nvml() -> bool:
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def test_the_version_imports_no_command_and_no_record_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    modules = json.loads(done.stderr.strip().splitlines()[-1])["modules"]
    assert "msgspec" not in modules
    assert "uv" not in modules
