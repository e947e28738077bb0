"""The commands that mend the packages of a Python: torchdeck's own for a deck, uv's for any other."""

from __future__ import annotations

import re

from torchdeck.machine.facts import PythonFacts, TorchBuild

_SAFE = re.compile(r"[\w@%+=:,./~-]+", re.ASCII)


def quoted(text: str) -> str:
    """Return a word as a shell takes it, ``~`` left for the shell to expand."""
    return text if _SAFE.fullmatch(text) else "'" + text.replace("'", "'\"'\"'") + "'"


def release_of(build: TorchBuild) -> str:
    """Return the release of a build, without what stands behind ``+``."""
    return build.version.split("+")[0]


def mend_deck(python: PythonFacts) -> str | None:
    """Return the command that brings a deck back to its lock; None for a Python that belongs to no deck."""
    return None if python.deck is None else f"torchdeck up --name {quoted(python.deck)} --repair"


def mend_torch(python: PythonFacts, *requirements: str) -> tuple[str, ...]:
    """Return the commands that install a fitting build of torch, with its companions, in place of the present one.

    Args:
        python: The Python that holds it.
        requirements: What to install, torch first: ``torch==2.6.0``.
    """
    if python.deck is not None:
        release = requirements[0].partition("==")[2] or "latest"
        return (f"torchdeck upgrade --name {quoted(python.deck)} --to {release}", "torchdeck stacks")
    words = " ".join(quoted(requirement) for requirement in requirements)
    return (f"uv pip install --python {quoted(python.path)} --torch-backend=auto --reinstall {words}", "torchdeck up")


def mend_packages(python: PythonFacts, *requirements: str, reinstall: bool = False) -> tuple[str, ...]:
    """Return the command that installs packages, or a deck's own."""
    deck = mend_deck(python)
    if deck is not None:
        return (deck,)
    words = " ".join(quoted(requirement) for requirement in requirements)
    again = " --reinstall" if reinstall else ""
    return (f"uv pip install --python {quoted(python.path)}{again} {words}",)


def mend_without(python: PythonFacts, *names: str) -> str:
    """Return the command that removes packages."""
    words = " ".join(quoted(name) for name in names)
    return f"uv pip uninstall --python {quoted(python.path)} {words}"
