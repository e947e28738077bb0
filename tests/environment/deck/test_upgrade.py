"""Upgrades of a real deck: to the newest stack and back, and one that fails and is undone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Home

pytestmark = [pytest.mark.deck, pytest.mark.full]

# Makes ``import torch`` fail as soon as torch 2.7 is in the environment: a stack that does not work.
_BREAK = """\
import importlib.metadata, sys; importlib.metadata.version("torch").startswith("2.7") and sys.modules.update(torch=None)
"""


def environment(home: Home) -> Path:
    return Path(home.json("status")["decks"][0]["environment"])


def versions(home: Home) -> str:
    done = home.run("exec", "--", "python", "-c", "import torch, torchdeck; print(torch.__version__.split('+')[0])")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_newest_stack_that_installs_here_verifies_and_the_way_back_too(home: Home) -> None:
    assert home.run("up", "--no-lab").returncode == 0
    preview = home.json("upgrade", "--to", "latest", "--dry-run")
    assert preview["old_torch"] == "2.6.0"
    assert any(change["name"] == "torch" for change in preview["changes"])
    assert versions(home) == "2.6.0", "a preview changes nothing"
    home.json("upgrade", "--to", "latest", "--yes", timeout_s=1500)
    newest = versions(home)
    assert newest == preview["new_torch"]
    assert home.json("verify")["passed"]
    assert home.json("up", "--no-lab")["did"] == [], "the deck stays where it was brought"
    home.json("upgrade", "--to", "2.6", "--yes", timeout_s=1500)
    assert versions(home) == "2.6.0"
    lock = (home.project / "torchdeck.lock").read_text()
    assert "torch==2.6.0" in lock
    installed = home.run("exec", "--", "uv", "pip", "list", "--format", "json", "--python", str(environment(home)))
    names = {package["name"] for package in json.loads(installed.stdout)} if installed.returncode == 0 else set()
    assert not any(name.endswith("-cu13") for name in names), "nothing of the newer stack is left"


def test_an_upgrade_that_does_not_verify_is_undone(home: Home) -> None:
    assert home.run("up", "--no-lab").returncode == 0
    (site,) = (environment(home) / "lib").glob("python3.*/site-packages")
    (site / "zz_break.pth").write_text(_BREAK)
    before = (home.project / "torchdeck.lock").read_bytes()
    done = home.run("upgrade", "--to", "2.7", "--yes", timeout_s=1500)
    assert done.returncode == 1, done.stderr
    assert "back on torch 2.6.0" in done.stderr
    assert versions(home) == "2.6.0"
    assert (home.project / "torchdeck.lock").read_bytes() == before
    assert home.json("verify")["passed"]


def test_an_upgrade_needs_a_yes(home: Home) -> None:
    assert home.run("up", "--no-lab").returncode == 0
    done = home.run("upgrade", "--to", "2.7")
    assert done.returncode == 2
    assert "-y" in done.stderr
    (home.project / "torchdeck.toml").write_text('stack = "2.6"\n')
    done = home.run("upgrade", "--to", "2.7", "--yes")
    assert done.returncode == 2
    assert "torchdeck.toml" in done.stderr
