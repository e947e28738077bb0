"""A project's own requirements: found, read, and held against the stack.

It reads requirements files and the static dependencies of a pyproject.toml. It does not know setup.py, Poetry's own
tables or conda's environment.yml, and says so when it meets them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchdeck import toml
from torchdeck.environment.lock import inputs_digest
from torchdeck.errors import FindingsError, UsageError
from torchdeck.machine.records import Finding

_MAX_BYTES = 2_000_000
_MAX_DEPTH = 10
# An index of torch builds in a project's file would bring in another build than the one that fits this machine.
_TORCH_INDEX = re.compile(r"pytorch", re.IGNORECASE)
_UNHASHABLE = re.compile(r"^(git|hg|svn|bzr)\+|^(\.{0,2}/|file:)|^https?://", re.IGNORECASE)


@dataclass
class ProjectRequirements:
    """What a project asks for.

    Args:
        locked: Requirements that an index can serve, as pip writes them; these are locked with hashes.
        unlocked: Editable, local and version-control requirements, which have no hash.
        options: Index options of the files, passed on.
        dropped: Lines that were left out, each with the reason.
        files: The files that were read.
        notes: What a person should know, such as a file of a kind that is not read.
    """

    locked: list[str] = field(default_factory=list)
    unlocked: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Return what identifies these requirements."""
        return inputs_digest([*self.locked, *self.unlocked, *self.options])


def read_requirements(project: Path, chosen: Sequence[str] = (), own_name: str = "torchdeck") -> ProjectRequirements:
    """Read the requirements of a project.

    Args:
        project: The project folder.
        chosen: Files named in the settings; without any, requirements.txt, else pyproject.toml.
        own_name: A project of this name needs nothing: it is in the deck already.

    Raises:
        UsageError: A named file is missing, or a line is malformed.
    """
    found = ProjectRequirements()
    if chosen:
        for name in chosen:
            path = project / name
            if not path.is_file():
                raise UsageError(f"the requirements file {name} does not exist", found=f"nothing at {path}")
            _read_any(path, found)
        return found
    pyproject = project / "pyproject.toml"
    if pyproject.is_file() and _project_table(pyproject).get("name") == own_name:
        return found
    if (project / "requirements.txt").is_file():
        _read_any(project / "requirements.txt", found)
    elif pyproject.is_file():
        _read_any(pyproject, found)
    for name in ("environment.yml", "environment.yaml", "setup.py", "Pipfile"):
        if not found.files and (project / name).is_file():
            found.notes.append(f"{name} is not read: list what it needs in requirements.txt or torchdeck.toml")
    return found


def _read_any(path: Path, found: ProjectRequirements) -> None:
    if path.name == "pyproject.toml":
        table = _project_table(path)
        found.files.append(path)
        if "dependencies" in table.get("dynamic", []):
            found.notes.append(f"{path.name}: its dependencies are dynamic and were not read")
        for line in table.get("dependencies", []):
            _sort_in(str(line), path, 0, found)
    else:
        _read_file(path, found, depth=0)


def _project_table(path: Path) -> dict[str, Any]:
    try:
        table = toml.loads(_text(path)).get("project", {})
    except toml.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML", found=str(error)) from None
    return table if isinstance(table, dict) else {}


def _text(path: Path) -> str:
    if path.stat().st_size > _MAX_BYTES:
        raise UsageError(f"{path} is too large for a requirements file", found=f"{path.stat().st_size} bytes")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text", found=str(error)) from None


def _read_file(path: Path, found: ProjectRequirements, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise UsageError(f"{path} includes itself", found=f"more than {_MAX_DEPTH} files deep")
    found.files.append(path)
    text = re.sub(r"\\\r?\n", " ", _text(path))
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        if not line:
            continue
        included = re.match(r"^(?:-r|--requirement)[\s=]+(\S+)$", line)
        if included:
            other = path.parent / included[1]
            if not other.is_file():
                raise UsageError(f"{path}:{number} names a file that does not exist", found=included[1])
            _read_file(other, found, depth + 1)
        elif re.match(r"^(-c|--constraint)\b", line):
            found.dropped.append((line, "constraint files of the project are not applied to the deck"))
        elif line.startswith("-") and not re.match(r"^(-e|--editable)\b", line):
            _sort_option(line, found)
        else:
            _sort_in(line, path, number, found)


def _sort_option(line: str, found: ProjectRequirements) -> None:
    if re.match(r"^(-i|--index-url|--extra-index-url|-f|--find-links)\b", line) and _TORCH_INDEX.search(line):
        found.dropped.append((line, "torchdeck itself chooses the build of torch that fits this machine"))
    elif re.match(r"^(-i|--index-url|--extra-index-url|-f|--find-links|--no-binary|--only-binary|--pre)\b", line):
        found.options.append(line)
    else:
        found.dropped.append((line, "this option concerns pip alone"))


def _sort_in(line: str, path: Path, number: int, found: ProjectRequirements) -> None:
    line = re.sub(r"\s+--(hash|config-settings?|global-option)[=\s]\S+", "", line).strip()
    if re.match(r"^(-e|--editable)\b", line) or _UNHASHABLE.match(line):
        found.unlocked.append(line)
        return
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        where = f"{path}:{number}" if number else str(path)
        raise UsageError(
            f"{where} is not a requirement", found=line[:120], needs=str(error).splitlines()[0], mend=f"edit {path}"
        ) from None
    (found.unlocked if requirement.url else found.locked).append(line)


def judge_pins(found: ProjectRequirements, stack: dict[str, str], listed: Sequence[str] = ()) -> list[Finding]:
    """Find the requirements that no version of the stack satisfies.

    Args:
        found: The project's requirements.
        stack: Name and version of torch and its companions, such as ``{"torch": "2.6.0"}``.
        listed: The torch releases that the catalogue knows, to offer the one that the project asks for.
    """
    findings = []
    for line in found.locked:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in stack or (requirement.marker and not requirement.marker.evaluate()):
            continue
        if requirement.specifier.contains(Version(stack[name]).public, prereleases=True):
            continue
        fitting = [release for release in listed if requirement.specifier.contains(release)] if name == "torch" else []
        choices = [f"torchdeck up --stack {fitting[-1]}"] if fitting else []
        findings.append(
            Finding(
                rule="torch-pin-conflict",
                severity="error",
                title=f"the project asks for {line}, the stack has {name} {stack[name]}",
                cause="Both cannot be in one environment, and torchdeck never mixes builds of torch.",
                evidence=tuple(str(path) for path in found.files),
                needs=f"a stack with {requirement}, or a project that accepts {name} {stack[name]}",
                mend=(*choices, "torchdeck up --keep-stack  (leaves out the project's pin)"),
            )
        )
    return findings


def without_stack(found: ProjectRequirements, stack: dict[str, str]) -> ProjectRequirements:
    """Return the requirements without those on torch and its companions, which the stack already decides."""
    kept = [line for line in found.locked if canonicalize_name(Requirement(line).name) not in stack]
    dropped = [(line, "the stack decides it") for line in found.locked if line not in kept]
    return ProjectRequirements(kept, found.unlocked, found.options, found.dropped + dropped, found.files, found.notes)


def raise_for_pins(findings: Sequence[Finding]) -> None:
    """Raise the first conflict as an error.

    Raises:
        FindingsError: There is one.
    """
    if findings:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise FindingsError(
            first.title + more,
            rule=first.rule,
            found="; ".join(first.evidence),
            needs=first.needs,
            mend=first.mend,
        )
