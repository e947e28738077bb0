"""The plan of a deck on a virtual environment: every command and file, before anything is done.

Pure: the same request gives the same plan, which ``--dry-run`` prints and golden tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from torchdeck import __version__
from torchdeck.environment.deck.paths import DeckPaths


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do.

    Args:
        name: Its id, such as ``install``.
        title: What it does, for people.
        argv: The command; empty for a step that only writes files.
        writes: The files that it makes or replaces.
    """

    name: str
    title: str
    argv: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps in their order."""

    schema: str = "torchdeck.plan/1"
    deck: str
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        """Return a step by its id."""
        return next(step for step in self.steps if step.name == name)


def plan_venv(
    paths: DeckPaths,
    *,
    python: Path,
    backend: str,
    unlocked: Sequence[str],
    lock_file: Path,
    have_lock: bool,
    notebooks: Path,
    host: str,
    port: int,
) -> Plan:
    """Plan a deck on a virtual environment.

    Args:
        paths: Where it keeps things.
        python: The interpreter beneath it.
        backend: PyTorch's own index to take torch from (``cu126``, ``cpu``), empty for the ordinary index.
        unlocked: Requirements without a hash, installed under the constraints.
        lock_file: The lock to install.
        have_lock: Whether that lock already answers the request, so that nothing is resolved.
        notebooks: JupyterLab's working folder.
        host: The address that it listens on.
        port: The first port that it tries.
    """
    wheel = paths.folder / "wheel" / f"torchdeck-{__version__}-py3-none-any.whl"
    uv_pip = ("uv", "pip", "install", "--python", str(paths.python))
    index = (f"--torch-backend={backend}",) if backend else ()
    steps = []
    if not have_lock:
        compiled = ("uv", "pip", "compile", str(paths.inputs), "--python", str(python), "--format", "pylock.toml")
        steps.append(
            Step(
                name="resolve",
                title="choosing matching versions",
                argv=(*compiled, "--output-file", str(paths.pylock), "--no-header", *index),
                writes=(str(paths.inputs), str(lock_file)),
            )
        )
    steps += [
        Step(
            name="environment",
            title="making the environment",
            argv=(
                *("uv", "venv", "--allow-existing", "--python", str(python)),
                "--prompt",
                paths.name,
                str(paths.environment),
            ),
            writes=(str(paths.environment), str(paths.marker)),
        ),
        Step(
            name="install",
            title="installing the packages",
            argv=(*uv_pip, "--require-hashes", "--requirements", str(paths.lock), *index),
        ),
        Step(
            name="torchdeck",
            title="adding torchdeck itself",
            argv=(*uv_pip, "--no-deps", "--reinstall-package", "torchdeck", str(wheel)),
            writes=(str(wheel),),
        ),
    ]
    if unlocked:
        extra = (*uv_pip, "--constraints", str(paths.constraints), *_words(unlocked), *index)
        steps.append(Step(name="project", title="installing what the project holds itself", argv=extra))
    checks = (str(paths.python), "-I", "-m", "torchdeck.training.checks")
    lab = (str(paths.python), "-m", "jupyterlab", f"--ServerApp.ip={host}", f"--ServerApp.port={port}")
    steps += [
        Step(name="files", title="writing kernel and configuration", writes=(str(paths.constraints), str(paths.lab))),
        Step(name="verify", title="proving that it computes right", argv=checks),
        Step(name="lab", title="starting JupyterLab", argv=(*lab, f"--ServerApp.root_dir={notebooks}")),
    ]
    return Plan(deck=paths.name, steps=tuple(steps))


def _words(lines: Sequence[str]) -> tuple[str, ...]:
    """Return requirement lines as arguments: ``-e .`` is two."""
    words: list[str] = []
    for line in lines:
        if line.startswith(("-e ", "--editable ")):
            words += ["--editable", line.split(None, 1)[1]]
        else:
            words.append(line)
    return tuple(words)
