"""What is asked of a deck: the settings, checked and in one record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchdeck.environment.deck.paths import check_name
from torchdeck.errors import UsageError
from torchdeck.settings import Setting

ENGINES = ("venv",)
_PLANNED_ENGINES = ("docker", "podman")


class DeckSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a deck. Field by field the settings of ``torchdeck.settings.KEYS``.

    Args:
        given: The names of the fields that somebody set; the others are defaults, or what the deck had before.
    """

    project: Path
    name: str = ""
    engine: str = "venv"
    stack: str = ""
    python: str = ""
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    keep_stack: bool = False
    port: int = 8888
    host: str = "127.0.0.1"
    notebooks: Path = Path("notebooks")
    directory: str = ""
    given: frozenset[str] = frozenset()


# What a deck keeps from one ``up`` to the next until something else is asked for.
_KEPT = ("stack", "python", "packages", "requirements", "keep_stack", "port", "host", "notebooks", "directory")


def kept_of(spec: DeckSpec) -> dict[str, Any]:
    """Return what a deck must remember of a request, as JSON can hold it."""
    values = {name: getattr(spec, name) for name in _KEPT}
    return {**values, "notebooks": str(spec.notebooks)}


def inherit(spec: DeckSpec, kept: Mapping[str, Any]) -> DeckSpec:
    """Return the request with what was not set now taken from what the deck remembers.

    So ``torchdeck up`` after ``torchdeck up --stack 2.7`` leaves the deck as it is.
    """
    values = {name: kept[name] for name in _KEPT if name in kept and name not in spec.given}
    for name in ("packages", "requirements"):
        if name in values:
            values[name] = tuple(values[name])
    if "notebooks" in values:
        values["notebooks"] = Path(values["notebooks"])
    return msgspec.structs.replace(spec, **values)


def spec_from(settings: Mapping[str, Setting], project: Path) -> DeckSpec:
    """Make the record from the settings.

    Raises:
        UsageError: A value cannot be used.
    """
    value = {name: setting.value for name, setting in settings.items()}
    engine = value["engine"]
    if engine in _PLANNED_ENGINES:
        raise UsageError(
            f"the engine {engine} is not built yet",
            found=f"engine = {engine} ({settings['engine'].origin})",
            needs="venv, the one engine that this version has",
            mend="torchdeck up --engine venv",
        )
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}", needs="venv", mend="torchdeck up --engine venv")
    if not 1 <= value["port"] <= 65535:
        raise UsageError(f"{value['port']} is not a port", needs="a number from 1 to 65535")
    if value["name"]:
        check_name(value["name"])
    directory = value["dir"]
    return DeckSpec(
        project=project,
        name=value["name"],
        engine=engine,
        stack=value["stack"],
        python=value["python"],
        packages=tuple(value["packages"]),
        requirements=tuple(value["requirements"]),
        keep_stack=value["keep_stack"],
        port=value["port"],
        host=value["host"],
        notebooks=(project / Path(value["notebooks"]).expanduser()).absolute(),
        directory=str((project / Path(directory).expanduser()).absolute()) if directory else "",
        given=frozenset(
            {"dir": "directory"}.get(name, name) for name, setting in settings.items() if setting.origin != "default"
        ),
    )
