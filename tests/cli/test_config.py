"""Settings on the command line: where each comes from, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Home


def _settings(home: Home, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = home.json("config", **more)["settings"]
    return found


def test_without_any_file_everything_is_a_default(home: Home) -> None:
    """Zero configuration works, and config shows every key."""
    found = _settings(home)
    assert {setting["origin"] for setting in found.values()} == {"default"}
    assert found["engine"]["value"] == "venv"
    assert found["port"]["value"] == 8888


def test_each_value_tells_its_origin_in_the_order_of_precedence(home: Home) -> None:
    """Environment over the project's file over the user's file over the default."""
    (home.project / "torchdeck.toml").write_text('stack = "2.7"\nport = 9000\nname = "ours"\n')
    user_file = home.folder / "config" / "torchdeck" / "config.toml"
    user_file.parent.mkdir(parents=True)
    user_file.write_text('stack = "2.5"\nhost = "127.0.0.2"\nport = 1\n')
    found = _settings(home, env={**home.env, "TORCHDECK_PORT": "9100"})
    assert found["port"] == {"value": 9100, "origin": "TORCHDECK_PORT"}
    assert found["stack"] == {"value": "2.7", "origin": str(home.project / "torchdeck.toml")}
    assert found["host"] == {"value": "127.0.0.2", "origin": str(user_file)}
    assert found["engine"]["origin"] == "default"
    shown = home.run("config", "--origin", env={**home.env, "TORCHDECK_PORT": "9100"}).stdout
    for text in ("(TORCHDECK_PORT)", f"({user_file})", "(default)", str(home.project / "torchdeck.toml")):
        assert text in shown


def test_the_project_is_the_nearest_folder_above_with_a_settings_file(home: Home) -> None:
    """From a subfolder the same settings are found; without such a file the folder itself is the project."""
    (home.project / "torchdeck.toml").write_text('stack = "2.7"\n')
    below = home.project / "src" / "deep"
    below.mkdir(parents=True)
    assert _settings(home, cwd=below)["stack"]["value"] == "2.7"
    (home.project / "torchdeck.toml").unlink()
    assert home.json("config", cwd=below)["project"] == str(below)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('stcak = "2.7"\n', ("unknown setting: stcak", "did you mean 'stack'?")),
        ("prot = 1\n", ("unknown setting: prot", "did you mean 'port'?")),
        ("xyzzy = 1\n", ("unknown setting: xyzzy", "one of: name, engine")),
        ("[tool]\nstack = 1\n", ("unknown setting: tool",)),
        ('port = "8888"\n', ("port must be a whole number", "8888")),
        ("port = true\n", ("port must be a whole number",)),
        ("packages = [1]\n", ("packages must be a list of texts",)),
        ('keep_stack = "yes"\n', ("keep_stack must be true or false",)),
        ("port = 8888\nport = 8889\n", ("not valid TOML",)),
        ("= = =\n", ("not valid TOML", "line 1")),
        ("\x00", ("not valid TOML",)),
    ],
)
@pytest.mark.parametrize("command", ["config", "up", "status"])
def test_a_wrong_settings_file_is_named_with_what_is_wrong(
    home: Home, command: str, text: str, words: tuple[str, ...]
) -> None:
    """Exit 2 from every command that reads it: a setting that is silently ignored is worse than none."""
    file = home.project / "torchdeck.toml"
    file.write_text(text)
    done = home.run(command)
    assert done.returncode == 2, done.stderr
    assert str(file) in done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home.folder / "data").exists()


def test_a_huge_or_binary_settings_file_is_refused(home: Home) -> None:
    """It is not read into memory, and the error names its size."""
    file = home.project / "torchdeck.toml"
    with file.open("wb") as sparse:
        sparse.truncate(3_000_000_000)
    done = home.run("config", timeout_s=20)
    assert done.returncode == 2
    assert "too large" in done.stderr
    assert "3000000000" in done.stderr
    file.write_bytes(b"stack = '\xff\xfe'\n")
    assert "not valid TOML" in home.run("config").stderr


def test_a_deeply_nested_settings_file_is_an_error_of_the_file(home: Home) -> None:
    """A parser that gives up on thousands of brackets does not make it our bug."""
    (home.project / "torchdeck.toml").write_text("packages = " + "[" * 50_000 + "]" * 50_000 + "\n")
    done = home.run("config")
    assert done.returncode == 2, done.stderr[:2000]
    assert "not valid TOML" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TORCHDECK_PORT", "many", "must be a whole number"),
        ("TORCHDECK_KEEP_STACK", "perhaps", "must be true or false"),
        ("TORCHDECK_NAME", "../../etc", "cannot be the name of a deck"),
        ("TORCHDECK_ENGINE", "podman", "not built yet"),
    ],
)
def test_a_wrong_variable_is_named(home: Home, variable: str, value: str, words: str) -> None:
    """The error says which variable holds it, or what it was about."""
    done = home.run("up", "--dry-run", env={**home.env, variable: value})
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert value in done.stderr
