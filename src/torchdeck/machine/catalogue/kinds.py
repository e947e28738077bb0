"""The pages of the known kinds of failure, in English and Chinese, and the signatures by which a log shows them."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import msgspec

from torchdeck import toml

LANGUAGES = ("en", "zh")


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person reads about one kind, in one language.

    Args:
        title: What is the matter, in one line.
        about: What is true on the machine, and why that has this effect.
        tell: How one tells it from each look-alike.
        avoid: Advice and printed hints that mislead or make it worse.
    """

    title: str
    about: str
    tell: tuple[str, ...]
    avoid: tuple[str, ...]


class Mend(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to mend it.

    Args:
        command: The exact command, values in braces; empty for a step that is no command.
        default: What stands for each value that is not known.
        en: What it does, or when it is the right one.
        zh: The same in Chinese.
    """

    command: str = ""
    default: dict[str, str] = {}
    en: str = ""
    zh: str = ""


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cause, with a permanent id.

    Args:
        id: Kebab-case, for ever.
        category: The file it stands in.
        severity: ``error`` stops or falsifies the work, ``warning`` hurts.
        concerns: Which versions and stacks.
        source: Where it is known from.
        en: Its page.
        zh: Its page in Chinese.
        mend: Ways to mend it, best first.
    """

    id: str
    category: str
    severity: Literal["error", "warning"]
    concerns: str
    source: tuple[str, ...]
    en: Page
    zh: Page
    mend: tuple[Mend, ...]

    def page(self, language: str) -> Page:
        """Return the page in a language."""
        return self.zh if language == "zh" else self.en


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a log shows a kind. Patterns are RE2 and look at one line each.

    Args:
        kind: The kind's id.
        all: Each must be found.
        any: At least one of these, if there are any.
        none: None of these may be found anywhere.
        weight: 1 to 100, how surely this text means this kind and no other.
        within: The lines that ``all`` finds lie within so many lines.
        source: The program that prints it.
        examples: Texts that must give this kind first.
        look_alikes: Texts that must not.
    """

    kind: str
    all: tuple[str, ...]
    weight: int
    source: str
    examples: tuple[str, ...]
    look_alikes: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    within: int = 200


@lru_cache(maxsize=1)
def kinds() -> dict[str, Kind]:
    """Return every kind by its id, sorted by category and then in the order of the files."""
    rows = (msgspec.convert(row, Kind) for name in _names("kinds") for row in _read("kinds", name)["kind"])
    return {kind.id: kind for kind in rows}


@cache
def kind_named(name: str) -> Kind | None:
    """Return one kind; only the file of its category is read."""
    category = _categories().get(name)
    if category is None:
        return kinds().get(name)
    rows = (msgspec.convert(row, Kind) for row in _read("kinds", f"{category}.toml")["kind"] if row["id"] == name)
    return next(rows, None)


@cache
def _categories() -> dict[str, str]:
    """Return the category of each kind that has a signature: its signatures stand in a file of that name."""
    return {row["kind"]: name.removesuffix(".toml") for name, row in _signature_rows()}


@cache
def _signature_rows() -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((name, row) for name in _names("signatures") for row in _read("signatures", name)["signature"])


@lru_cache(maxsize=1)
def signatures() -> tuple[Signature, ...]:
    """Return every signature."""
    return tuple(msgspec.convert(row, Signature) for _, row in _signature_rows())


@cache
def same_text() -> tuple[frozenset[str], ...]:
    """Return the groups of kinds that print the same text."""
    text = (resources.files(__package__) / "same_text.toml").read_text(encoding="utf-8")
    return tuple(frozenset(group["kinds"]) for group in toml.loads(text)["group"])


def _names(folder: str) -> list[str]:
    place = resources.files(__package__) / folder
    return sorted(file.name for file in place.iterdir() if file.name.endswith(".toml")) if place.is_dir() else []


def _read(folder: str, name: str) -> dict[str, Any]:
    return toml.loads((resources.files(__package__) / folder / name).read_text(encoding="utf-8"))
