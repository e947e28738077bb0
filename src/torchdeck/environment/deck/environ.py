"""The environment of a process in a deck, taken from this process's own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from torchdeck.environment.deck.files import deck_environment, deck_variables
from torchdeck.environment.deck.state import DeckState, paths_of


def usable_threads() -> int:
    """Return the cores that this process may use: affinity first, then a control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:  # noqa: PTH123 - a kernel file
            quota, period = file.read().split()
        return max(1, min(cores, -(-int(quota) // int(period))))
    except (OSError, ValueError):  # no such group, or its quota is "max"
        return cores


def variables_of(state: DeckState) -> dict[str, str]:
    """Return the variables that belong to a deck."""
    return deck_variables(state, paths_of(state.name, state.environment), usable_threads())


def environment_of(state: DeckState, base: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a process in a deck."""
    return deck_environment(variables_of(state), base)
