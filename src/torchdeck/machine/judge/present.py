"""Small questions that several rules ask of the facts, and the shape in which a path goes into a command."""

from __future__ import annotations

import re
import shlex

from torchdeck.machine.facts import Driver, Missing, Nvidia
from torchdeck.machine.facts.surroundings import Surroundings


def driver_of(nvidia: Nvidia | Missing) -> Driver | None:
    """Return the loaded driver; None without one, and where it is not known (the rules on GPUs say so)."""
    if isinstance(nvidia, Missing) or not isinstance(nvidia.driver, Driver):
        return None
    return nvidia.driver


def in_container(surroundings: Surroundings | Missing | None) -> bool:
    """Return whether this is a container, as far as it is known."""
    return isinstance(surroundings, Surroundings) and isinstance(surroundings.container, str)


def num_machines(surroundings: Surroundings | Missing | None) -> int:
    """Return how many machines the present job has, 1 where nothing says more."""
    if not isinstance(surroundings, Surroundings) or surroundings.slurm is None:
        return 1
    number = surroundings.slurm.num_nodes
    return 1 if isinstance(number, Missing) else number


def older(version: str, than: tuple[int, ...]) -> bool | None:
    """Return whether a version is older than another; None where it is no version."""
    match = re.match(r"\d{1,9}(?:\.\d{1,9})*", version, re.ASCII)
    return tuple(int(part) for part in match[0].split(".")) < than if match else None


def in_shell(path: str) -> str:
    """Return a path as it goes into a command: ``~`` and ``$USER`` stay what they are, all else is quoted."""
    if re.fullmatch(r"~?(?:/(?:\$USER|[\w.+@:-]|torchinductor_\$USER)+)*/?", path, re.ASCII):
        return path
    return "~/" + shlex.quote(path[2:]) if path.startswith("~/") else shlex.quote(path)
