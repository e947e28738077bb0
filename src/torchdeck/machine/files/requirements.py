"""Rules on requirements.txt and pyproject.toml.

It does not follow ``-r``: name the other file beside this one. Poetry's own tables are read where they are plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchdeck import toml
from torchdeck.errors import UsageError
from torchdeck.machine.files.hit import Hit
from torchdeck.machine.files.pins import Pin, parse_pin, variant_of
from torchdeck.machine.files.torch_pins import Indexes, judge_pins, named, python_unsupported, release_of

_OPTION = re.compile(r"(--index-url|--extra-index-url|--find-links|-i|-f)[\s=]+(\S+)")
_HASH = re.compile(r"\s--(hash|config-settings?|global-option)[=\s]\S+")
_COMMENT = re.compile(r"(^|\s)#.*$")
_LINE_CHARS = 4000
_MAX_GROUPS = 100
# The standard library's parser needs time with the square of a key's dotted parts.
_MAX_DOTS = 1000
_JUDGED = frozenset(("torch", "torchvision", "torchaudio", "triton", "numpy"))


def judge_requirements(text: str) -> list[Hit]:
    """Judge a requirements file."""
    pins, indexes = read_requirements(logical_lines(text))
    return judge_pins(pins, indexes)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first one, comments and continuations taken away."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        first = first if parts else number
        raw = raw.rstrip("\r")
        if raw.endswith("\\"):
            parts.append(raw[:-1])
            continue
        parts.append(raw)
        line = _COMMENT.sub("", "".join(parts)[:_LINE_CHARS]).strip()
        parts = []
        if line:
            yield first, line
    if parts:
        yield first, "".join(parts)[:_LINE_CHARS].strip()


def read_requirements(lines: Iterable[tuple[int, str]]) -> tuple[list[Pin], Indexes]:
    """Return the pins and the indexes of numbered requirement lines."""
    pins: list[Pin] = []
    variants: list[str] = []
    only = other = False
    for number, line in lines:
        if line.startswith("-"):
            match = _OPTION.match(line)
            if match:
                other = True
                only = only or match[1] in ("--index-url", "-i")
                variants += [variant_of(match[2])] if variant_of(match[2]) else []
            continue
        pin = parse_pin(_HASH.sub("", line), number)
        if pin is not None:
            pins.append(pin)
    return pins, Indexes(tuple(variants), only=only, other=other, certain=False)


def judge_pyproject(text: str) -> list[Hit]:
    """Judge the dependencies of a pyproject.toml: its own, those of each extra, those of each group.

    Raises:
        UsageError: It is not TOML.
    """
    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise UsageError("it is no project's TOML", found=f"a line with more than {_MAX_DOTS} dots")
    try:
        document = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise UsageError("it is not valid TOML", found=str(error)) from None
    lines = _Lines(text)
    project = _table(document.get("project"))
    tool = _table(document.get("tool"))
    indexes = _uv_indexes(_table(tool.get("uv")))
    base = [*_pins(project.get("dependencies"), lines), *_poetry(_table(tool.get("poetry")), lines)]
    hits = [*judge_pins(base, indexes), *_judge_python(project, base, lines)]
    extras, more = _table(project.get("optional-dependencies")), _table(document.get("dependency-groups"))
    groups = [*extras.values(), *more.values()]
    base = [pin for pin in base if pin.name in _JUDGED]
    for group in groups[:_MAX_GROUPS]:
        own = _pins(group, lines)
        # What base alone says is said once.
        if own:
            own_lines = {pin.line for pin in own}
            hits += [found for found in judge_pins([*base, *own], indexes) if found[0] in own_lines]
    return hits


class _Lines:
    """Finds the line of a text that was parsed out of a document, going forward so that repeats stay apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first: dict[str, int] = {}
        for number, line in enumerate(text.split("\n"), 1):
            for quoted in re.findall(r"\"([^\"]*)\"|'([^']*)'", line):
                self.first.setdefault(quoted[0] or quoted[1], number)
            key = re.match(r"\s*([\w.-]+)\s*=", line)
            if key:
                self.first.setdefault(f"{key[1]} =", number)

    def of(self, text: str) -> int:
        return self.first.get(text, 1)


def _pins(value: Any, lines: _Lines) -> list[Pin]:
    texts = [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
    return [pin for text in texts if (pin := parse_pin(text, lines.of(text))) is not None]


def _poetry(poetry: dict[str, Any], lines: _Lines) -> list[Pin]:
    pins = []
    for name, value in _table(poetry.get("dependencies")).items():
        version = value.get("version") if isinstance(value, dict) else value
        if not isinstance(version, str) or not re.fullmatch(r"(==)?\s*\d[\w.+]*|[<>=!~].*", version.strip()):
            continue
        text = version.strip() if version.strip()[0] in "<>=!~" else f"=={version.strip()}"
        pin = parse_pin(f"{name}{text}", lines.of(f"{name} ="))
        if pin is not None:
            pins.append(pin)
    return pins


def _uv_indexes(uv: dict[str, Any]) -> Indexes:
    listed = uv.get("index")
    urls = [str(_table(row).get("url", "")) for row in listed] if isinstance(listed, list) else []
    pip = _table(uv.get("pip"))
    backend = str(pip.get("torch-backend", ""))
    sources = _table(uv.get("sources"))
    # Several indexes are chosen among by markers: which one serves torch is not followed.
    variants = {variant_of(url) for url in urls} | {backend} - {"auto"}
    variants.discard("")
    known = tuple(variants) if "torch" not in sources or len(variants) == 1 else ()
    return Indexes(known, only="torch" in sources, other=bool(urls or sources.get("torch") or backend), certain=False)


def _judge_python(project: dict[str, Any], pins: list[Pin], lines: _Lines) -> list[Hit]:
    try:
        wanted = SpecifierSet(str(project.get("requires-python", "")))
    except InvalidSpecifier:
        return []
    hits = []
    for pin in named(pins, "torch"):
        release = release_of(pin.version)
        if release is None or not str(wanted):
            continue
        first, last = (int(text.split(".")[1]) for text in release.pythons)
        if any(wanted.contains(f"3.{minor}.{patch}") for minor in range(first, last + 1) for patch in (0, 9, 30)):
            continue
        hits.append(python_unsupported(lines.of("requires-python ="), f"requires-python {wanted}", pin.version))
    return hits


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
