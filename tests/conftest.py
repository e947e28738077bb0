"""What every test shares: a home of its own, and one real deck for the tests that need torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# What no installation can bring, as the beginning of a reason to skip.
_BEYOND_US = ("needs an NVIDIA GPU", "needs root", "recorded with a CUDA build")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Where every component is there (CI), a test that skips for want of one has failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("TORCHDECK_TEST_FORBID_SKIPS") and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if "gpu" not in item.keywords and not reason.startswith(_BEYOND_US):
            report.outcome = "failed"
            report.longrepr = f"skipped, though skips are forbidden here: {reason}"


_XDG = {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own XDG folders, so that none can see or harm the user's decks."""
    home = tmp_path_factory.mktemp("home")
    for variable, folder in _XDG.items():
        monkeypatch.setenv(variable, str(home / folder))
    for variable in list(os.environ):
        if variable.startswith("TORCHDECK_") and not variable.startswith("TORCHDECK_TEST_"):
            monkeypatch.delenv(variable)
    return home


@dataclass
class Home:
    """A user with XDG folders and a project of their own, who runs torchdeck as a command."""

    folder: Path
    project: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of this user's commands."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("TORCHDECK_")}
        env.update({variable: str(self.folder / folder) for variable, folder in _XDG.items()})
        # uv's own cache is the machine's: a gigabyte-sized download is made once, not once a test.
        env["UV_CACHE_DIR"] = _uv_cache()
        env["NO_COLOR"] = "1"
        return env

    def popen(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        """Start a torchdeck command."""
        options: dict[str, Any] = {"env": self.env, "cwd": self.project, "stdin": subprocess.DEVNULL, "text": True}
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        options.update(more)
        return subprocess.Popen([sys.executable, "-m", "torchdeck", *arguments], **options)

    def run(self, *arguments: str, timeout_s: float = 600, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a torchdeck command to its end."""
        process = self.popen(*arguments, **more)
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def json(self, *arguments: str, **more: Any) -> Any:
        """Run a command that must succeed, and return the JSON that it prints."""
        done = self.run(*arguments, "--json", **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def stop_everything(self) -> None:
        """Stop every JupyterLab of this user."""
        decks = self.folder / "data" / "torchdeck" / "decks"
        for deck in decks.iterdir() if decks.is_dir() else []:
            if not deck.name.startswith("."):
                self.run("down", "--name", deck.name)


def _uv_cache() -> str:
    given = os.environ.get("UV_CACHE_DIR")
    return given or str(Path(os.environ.get("TORCHDECK_TEST_UV_CACHE") or Path.home() / ".cache" / "uv"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A new user with an empty project; whatever they start is stopped."""
    user = Home(tmp_path / "home", tmp_path / "project")
    user.project.mkdir(parents=True)
    yield user
    user.stop_everything()


@pytest.fixture(scope="session")
def deck_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A user with one real deck on the default stack, made once per run; tests leave it as they found it."""
    folder = tmp_path_factory.mktemp("deck")
    user = Home(folder / "home", folder / "digits")
    user.project.mkdir()
    done = user.run("up", "--no-lab", timeout_s=1500)
    assert done.returncode == 0, done.stderr
    yield user
    user.stop_everything()


@pytest.fixture(scope="session")
def deck_python(request: pytest.FixtureRequest) -> Path:
    """The Python of a real deck with torch 2.6.0; ``TORCHDECK_TEST_PYTHON`` names another one to develop with."""
    given = os.environ.get("TORCHDECK_TEST_PYTHON")
    if given:
        return Path(given)
    user: Home = request.getfixturevalue("deck_home")
    return user.folder / "data" / "torchdeck" / "decks" / "digits" / "env" / "bin" / "python"
