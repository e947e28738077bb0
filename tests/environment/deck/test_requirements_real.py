"""Somebody else's repository gets a deck: its requirements are installed, its pin on torch is a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Home

pytestmark = pytest.mark.deck

_REQUIREMENTS = """\
# A repository as they are: torch pinned to what its author had, an index of CUDA builds, a package of its own.
--extra-index-url https://download.pytorch.example/whl/cu118
torch==2.5.1
torchvision
einops>=0.7  # shapes
iniconfig==2.0.0
-r requirements/extra.txt
-e .
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A user in a checkout of somebody else's repository."""
    folder = tmp_path_factory.mktemp("theirs")
    user = Home(folder / "home", folder / "Their Repo")
    (user.project / "requirements").mkdir(parents=True)
    (user.project / "requirements.txt").write_text(_REQUIREMENTS)
    (user.project / "requirements" / "extra.txt").write_text("tabulate\n")
    (user.project / "theirs.py").write_text("ANSWER = 42\n")
    (user.project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "theirs"\nversion = "1"\n[tool.hatch.build.targets.wheel]\ninclude = ["theirs.py"]\n'
    )
    yield user
    user.stop_everything()


def _lock(user: Home) -> str:
    return (user.project / "torchdeck.lock").read_text()


def test_a_pin_on_another_torch_is_a_conflict_with_choices(user: Home) -> None:
    """Exit 1, the rule's name, who asks for what, and both ways out as commands; nothing is installed."""
    done = user.run("up", "--no-lab")
    assert done.returncode == 1, done.stderr
    assert "torch-pin-conflict" in done.stderr
    assert "torch==2.5.1" in done.stderr
    assert "2.6.0" in done.stderr
    assert str(user.project / "requirements.txt") in done.stderr
    assert "torchdeck up --stack 2.5.1" in done.stderr
    assert "torchdeck up --keep-stack" in done.stderr
    assert user.json("status")["decks"][0]["state"] == "incomplete"
    assert not (user.project / "torchdeck.lock").exists()


def test_keep_stack_goes_on_without_the_pin(user: Home) -> None:
    """Everything else is installed, the included file and the project itself too; what was left out is said."""
    done = user.run("up", "--no-lab", "--keep-stack")
    assert done.returncode == 0, done.stderr
    assert "left out" in done.stderr
    assert "torch==2.5.1" in done.stderr
    assert "whl/cu118" in done.stderr
    code = (
        "import json, torch, einops, iniconfig, tabulate, theirs; from importlib.metadata import version; "
        "print(json.dumps([torch.__version__, version('iniconfig'), theirs.ANSWER, theirs.__file__]))"
    )
    found = json.loads(user.run("exec", "--", "python", "-c", code).stdout)
    assert found[0].startswith("2.6.0")
    assert found[1:3] == ["2.0.0", 42]
    assert Path(found[3]) == user.project / "theirs.py"
    assert "# unlocked: -e ." in _lock(user)
    for pin in ("torch==2.6.0", "einops==", "iniconfig==2.0.0", "tabulate=="):
        assert pin in _lock(user)


def test_the_answer_is_remembered(user: Home) -> None:
    """The next up asks nothing and does nothing."""
    assert user.json("up", "--no-lab")["did"] == []


def test_a_version_that_does_not_exist_is_named_and_the_deck_stays(user: Home) -> None:
    """Exit 1 with the resolver's reason; what was there goes on working."""
    file = user.project / "requirements.txt"
    text = file.read_text()
    file.write_text(f"{text}tabulate==99.99\n")
    done = user.run("up", "--no-lab")
    assert done.returncode == 1, done.stderr
    assert "tabulate" in done.stderr
    assert "Traceback" not in done.stderr
    file.write_text(text)
    assert user.run("exec", "--", "python", "-c", "import torch, tabulate").returncode == 0
    assert user.json("up", "--no-lab")["did"] == []


@pytest.mark.full
def test_a_lock_that_a_colleague_renewed_is_followed(user: Home) -> None:
    """After a pull that changed torchdeck.lock, up installs what it says, and keeps it."""
    file = user.project / "torchdeck.lock"
    entries = file.read_text().split("\n")
    first = next(number for number, line in enumerate(entries) if line.startswith("tabulate=="))
    last = next(number for number in range(first, len(entries)) if not entries[number].endswith("\\"))
    renewed = "\n".join([*entries[:first], *entries[last + 1 :]])
    file.write_text(renewed)
    assert user.json("up", "--no-lab")["did"] == ["installed"]
    assert user.run("exec", "--", "python", "-c", "import tabulate").returncode == 1
    assert file.read_text() == renewed
    assert user.json("up", "--no-lab")["did"] == []
