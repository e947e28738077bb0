"""One file, judged by the rules of its kind."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from torchdeck.errors import UsageError
from torchdeck.machine.files.compose import judge_compose
from torchdeck.machine.files.conda import judge_environment
from torchdeck.machine.files.devcontainer import judge_devcontainer
from torchdeck.machine.files.docker_rules import judge_dockerfile
from torchdeck.machine.files.hit import Hit
from torchdeck.machine.files.kinds import KNOWN, Kind, kind_of
from torchdeck.machine.files.requirements import judge_pyproject, judge_requirements
from torchdeck.machine.records import SEVERITIES, Finding

# The largest lock-like requirements file in use is a tenth of this.
FILE_LIMIT_BYTES = 2_000_000

_JUDGES: dict[Kind, Callable[[str], list[Hit]]] = {
    "dockerfile": judge_dockerfile,
    "compose": judge_compose,
    "devcontainer": judge_devcontainer,
    "requirements": judge_requirements,
    "pyproject": judge_pyproject,
    "conda": judge_environment,
}


def judge_file(name: str, text: str) -> list[Finding]:
    """Judge one file.

    Args:
        name: Its name as it is to be shown; its last part tells its kind.
        text: Its content.

    Returns:
        The findings, the gravest first, then by line.

    Raises:
        UsageError: It is of no known kind, or no valid file of its kind.
    """
    kind = kind_of(name, text)
    if kind is None:
        raise UsageError(f"{name} is of no kind that is judged", needs=KNOWN)
    try:
        hits = _JUDGES[kind](text)
    except UsageError as error:
        raise UsageError(
            f"{name}: {error.title}", found=error.found, needs=error.needs, mend=error.mend or f"edit {name}"
        ) from None
    seen: dict[tuple[int, str, str], Hit] = {}
    for line, finding in hits:
        seen.setdefault((line, finding.rule, finding.title), (line, finding))
    ordered = sorted(seen.values(), key=lambda found: (SEVERITIES.index(found[1].severity), found[0]))
    return [msgspec.structs.replace(finding, where=f"{name}:{line}") for line, finding in ordered]
