"""What every test shares: a home of its own, and one real deck for the tests that need torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own XDG folders, so that none can see or harm the user's decks."""
    home = tmp_path_factory.mktemp("home")
    for variable, folder in (("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(variable, str(home / folder))
    for variable in list(os.environ):
        if variable.startswith("TORCHDECK_") and not variable.startswith("TORCHDECK_TEST_"):
            monkeypatch.delenv(variable)
    return home


@pytest.fixture(scope="session")
def deck_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a real deck with torch 2.6.0 in it, made once per run by ``torchdeck up``."""
    given = os.environ.get("TORCHDECK_TEST_PYTHON")
    if given:
        return Path(given)
    pytest.skip("no deck yet")
