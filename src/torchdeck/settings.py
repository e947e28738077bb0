"""Settings: flag > environment (``TORCHDECK_…``) > project's torchdeck.toml > user's file > default.

Zero configuration works. An unknown key or a value of the wrong kind is an error that names the file and the
nearest key: a setting that is silently ignored is worse than none.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchdeck import places, toml
from torchdeck.errors import UsageError

PROJECT_FILE = "torchdeck.toml"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Key:
    """One setting: its type, its default, and what it means."""

    kind: type
    default: Any
    help: str


KEYS: dict[str, Key] = {
    "name": Key(str, "", "name of the deck; default: from the project folder"),
    "engine": Key(str, "venv", "venv (docker and podman are not built yet)"),
    "stack": Key(
        str, "", "torch release and build: 2.6, 2.7-cu128, latest; default: the reference 2.6.0 where it runs"
    ),
    "python": Key(str, "", "Python of the deck, such as 3.12 or a path; default: the one that runs torchdeck"),
    "packages": Key(list, [], "further packages, as pip writes them"),
    "requirements": Key(list, [], "requirements files; default: requirements.txt or pyproject.toml of the project"),
    "keep_stack": Key(bool, False, "drop pins on torch and its companions that conflict with the stack"),
    "port": Key(int, 8888, "first port that JupyterLab tries"),
    "host": Key(str, "127.0.0.1", "address that JupyterLab listens on"),
    "notebooks": Key(str, "notebooks", "working folder, relative to the project"),
    "dir": Key(str, "", "folder of the environment; default: in the XDG data folder"),
}


@dataclass(frozen=True)
class Setting:
    """A value and where it came from."""

    value: Any
    origin: str


def find_project(start: Path) -> Path:
    """Return the nearest folder at or above ``start`` that holds a torchdeck.toml, else ``start`` itself."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    return start


def load(project: Path, flags: Mapping[str, Any] | None = None) -> dict[str, Setting]:
    """Return every setting with its origin.

    Args:
        project: The project folder, whose torchdeck.toml is read if it is there.
        flags: Values given on the command line; None means not given.

    Raises:
        UsageError: A file is not TOML, has an unknown key, or a value of the wrong kind.
    """
    layers = [
        ({key: value for key, value in (flags or {}).items() if value is not None}, "flag"),
        (_from_environment(), "environment"),
        (_from_file(project / PROJECT_FILE), str(project / PROJECT_FILE)),
        (_from_file(places.config_file()), str(places.config_file())),
    ]
    found: dict[str, Setting] = {}
    for name, key in KEYS.items():
        found[name] = Setting(key.default, "default")
        for values, origin in layers:
            if name in values:
                found[name] = Setting(values[name], _variable(name) if origin == "environment" else origin)
                break
    return found


def _variable(name: str) -> str:
    return f"TORCHDECK_{name.upper()}"


def _from_environment() -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, key in KEYS.items():
        text = os.environ.get(_variable(name))
        if text is not None and text != "":
            values[name] = _parse(text, key.kind, _variable(name))
    return values


def _parse(text: str, kind: type, origin: str) -> Any:
    if kind is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind is bool:
        if text.lower() in {"1", "true", "yes", "on"}:
            return True
        if text.lower() in {"0", "false", "no", "off"}:
            return False
        raise UsageError(f"{origin} must be true or false", found=text, mend=f"export {origin}=true")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"{origin} must be a whole number", found=text) from None
    return text


def _from_file(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            return {}
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise UsageError(f"{path} is too large", found=f"{size} bytes", needs=f"at most {_MAX_BYTES}")
        values: dict[str, Any] = toml.loads(path.read_bytes().decode("utf-8"))
    except PermissionError:
        raise UsageError(f"{path} cannot be read", found="no permission", mend=f"chmod u+r {path}") from None
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML", found=str(error), mend=f"edit {path}") from None
    for name, value in values.items():
        _check(name, value, path)
    return values


def _check(name: str, value: Any, path: Path) -> None:
    if name not in KEYS:
        near = difflib.get_close_matches(name, KEYS, n=1)
        raise UsageError(
            f"{path} has an unknown setting: {name}",
            found=f"{name} = {value!r}"[:200],
            needs=f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(KEYS)}",
            mend="torchdeck config",
        )
    kind = KEYS[name].kind
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if right and kind is list:
        right = all(isinstance(item, str) for item in value)
    if not right:
        wanted = {str: "a text", int: "a whole number", bool: "true or false", list: "a list of texts"}[kind]
        raise UsageError(f"{path}: {name} must be {wanted}", found=f"{name} = {value!r}"[:200], mend=f"edit {path}")
