"""The wheel that torchdeck packs of itself, against the one that the build backend makes."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torchdeck.environment.deck.own_wheel import own_digest, own_requirements, write_own_wheel

ROOT = Path(__file__).parents[3]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_holds_the_same_files_as_the_built_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    (built,) = (tmp_path / "built").glob("*.whl")
    expected, packed = contents(built), contents(write_own_wheel(tmp_path / "own"))
    code = {name: data for name, data in expected.items() if ".dist-info/" not in name}
    assert {name: data for name, data in packed.items() if ".dist-info/" not in name} == code
    (entry,) = (name for name in expected if name.endswith("entry_points.txt"))
    assert packed[entry].split() == expected[entry].split()


def test_equal_contents_give_an_equal_file(tmp_path: Path) -> None:
    first, second = write_own_wheel(tmp_path / "a"), write_own_wheel(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert len(own_digest()) == 16


def test_it_installs_with_uv_and_runs(tmp_path: Path) -> None:
    wheel = write_own_wheel(tmp_path)
    target = tmp_path / "site"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-config",
            "--target",
            target,
            wheel,
        ],
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", "import torchdeck; print(torchdeck.__file__)"],
        env={"PYTHONPATH": str(target)}, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith(str(target))


def test_a_marker_on_the_python_is_kept_for_the_deck_whose_python_may_differ() -> None:
    lines = own_requirements("train", "notebook")
    (tomli,) = [line for line in lines if line.startswith("tomli")]
    assert "python_version" in tomli


@pytest.mark.parametrize(("extras", "there"), [((), False), (("notebook",), True)])
def test_an_extra_is_taken_only_when_it_is_asked_for(extras: tuple[str, ...], there: bool) -> None:
    assert any(line.startswith("jupyterlab") for line in own_requirements(*extras)) == there
    assert not any(line.startswith("pytest") for line in own_requirements(*extras))
