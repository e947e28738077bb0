"""Which kind of file a file is: by its name, else by what stands in it.

It knows the kinds that are judged, and no other: a Kubernetes manifest or a CI workflow is None.
"""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["dockerfile", "compose", "devcontainer", "requirements", "pyproject", "conda"]

_YAML = r"\.ya?ml"
_NAMES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("dockerfile", re.compile(r"(docker|container)file([.\-_][\w.\-]+)?|[\w.\-]+\.(docker|container)file", re.I)),
    ("compose", re.compile(rf"(docker-)?compose([.\-_][\w.\-]+)?{_YAML}", re.I)),
    ("devcontainer", re.compile(r"\.?devcontainer\.json", re.I)),
    ("pyproject", re.compile(r"pyproject\.toml", re.I)),
    ("requirements", re.compile(r"([\w.\-]*[.\-_])?(requirements|constraints)([.\-_][\w.\-]+)?\.(txt|in)", re.I)),
    ("conda", re.compile(rf"([\w.\-]*[.\-_])?(environment|conda)([.\-_][\w.\-]+)?{_YAML}", re.I)),
)
# Files that lie beside a Dockerfile and are none.
_NOT_NAMES = re.compile(r".*file\.(dockerignore|lock|md|bak|orig|swp)", re.I)
_HEAD_CHARS = 20_000
_FROM = re.compile(r"^\s*FROM\s+\S+", re.I | re.M)
_FIRST = re.compile(r"(FROM|ARG)\s+\S+", re.I)
_REQUIREMENT = re.compile(r"(-{1,2}[a-z][\w-]*([ =].*)?|[A-Za-z0-9][\w.\-]*(\[[\w,\s-]*\])?\s*([=<>!~@;].*)?)")

KNOWN = "Dockerfile, Containerfile, compose.yaml, devcontainer.json, requirements.txt, pyproject.toml, environment.yml"


def kind_by_name(name: str) -> Kind | None:
    """Return the kind that a file's name says; None if it says none."""
    base = re.split(r"[\\/]", name)[-1]
    if _NOT_NAMES.fullmatch(base):
        return None
    return next((kind for kind, pattern in _NAMES if pattern.fullmatch(base)), None)


def kind_of(name: str, text: str) -> Kind | None:
    """Return the kind of a file: by its name, else by its beginning; None if it is none that is judged."""
    return kind_by_name(name) or _kind_by_content(name, text[:_HEAD_CHARS])


def _kind_by_content(name: str, head: str) -> Kind | None:
    lines = [line.strip() for line in head.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "//"))]
    if not lines:
        return None
    if _FIRST.match(lines[0]) and _FROM.search(head):
        return "dockerfile"
    if lines[0].startswith("{"):
        looks = re.search(r'"(runArgs|postCreateCommand|remoteUser|hostRequirements|devcontainerId)"\s*:', head)
        return "devcontainer" if looks else None
    if re.search(r"^services:\s*(#.*)?$", head, re.M):
        return "compose"
    if re.search(r"^dependencies:\s*(#.*)?$", head, re.M) and re.search(r"^(channels|name):", head, re.M):
        return "conda"
    if re.search(r"^\[(project|build-system|dependency-groups)\]\s*$", head, re.M):
        return "pyproject"
    whole = lines[:-1] if len(head) == _HEAD_CHARS else lines
    if name.lower().endswith((".txt", ".in", ".pip")) and any(re.search(r"[=<>~]=", line) for line in whole):
        return "requirements" if all(_REQUIREMENT.fullmatch(line) for line in whole) else None
    return None
