"""Deciding what a deck will be: stack, Python, exact versions, and what that costs. Nothing of the deck is changed."""

from __future__ import annotations

import platform
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from torchdeck.environment.deck import install, own_wheel
from torchdeck.environment.deck.choose import Choice, choose
from torchdeck.environment.deck.files import minor
from torchdeck.environment.deck.integrity import installed_packages
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.plan import Plan, plan_venv
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.requirements import (
    ProjectRequirements,
    judge_pins,
    raise_for_pins,
    read_requirements,
    without_stack,
)
from torchdeck.environment.deck.spec import DeckSpec, inherit
from torchdeck.environment.deck.state import deck_of, load_state, paths_of
from torchdeck.environment.lock import LOCK_NAME, Lock, LockHead, inputs_digest, read_lock
from torchdeck.environment.records import Preview
from torchdeck.errors import DiskError, UsageError
from torchdeck.machine.stack import listed_releases

# Installed size over download size, measured on torch 2.6.0+cu124 with JupyterLab: 5.4 GB from 3.1 GB of wheels.
_STORED_PER_DOWNLOADED = 1.75

# pip for `pip install` in a cell; setuptools because Inductor of torch 2.6 imports it to find the compiler, and
# torch's own metadata asks for it on Python 3.12 and newer only (seen: torch.compile fails without it on 3.11).
_TOOLS = ("pip", "setuptools")


@dataclass(frozen=True)
class Decision:
    """What a deck will be.

    Args:
        choice: Stack and Python, with the reasons.
        plan: Every command and file.
        lock: The exact packages.
    """

    choice: Choice
    plan: Plan
    lock: Lock


def deck_paths(name: str, spec: DeckSpec) -> DeckPaths:
    """Return where the deck keeps things: where it was asked for, where it is already, or the default."""
    state = load_state(name)
    return paths_of(name, spec.directory or (state.environment if state else ""))


def own_lock(paths: DeckPaths) -> Lock | None:
    """Return the lock that the environment was made from; None if there is none, or it is damaged."""
    try:
        return read_lock(paths.lock)
    except ValueError:
        return None


def decide(
    spec: DeckSpec, paths: DeckPaths, wanted: ProjectRequirements, reporter: Reporter, *, relock: bool = False
) -> Decision:
    """Choose stack, Python and exact versions; a lock that answers this very request is kept.

    Raises:
        TorchdeckError: No stack fits, a pin conflicts, or the versions cannot be chosen.
    """
    reporter.step("looking at this machine")
    shared = None if relock else shared_lock(spec)
    release = release_of(spec, shared)
    choice = choose(msgspec.structs.replace(spec, stack=release), reporter)
    if release != spec.stack:
        choice = replace(choice, reasons=(*choice.reasons, f"{LOCK_NAME} of the project says torch {release}"))
    wanted = _fit(spec, wanted, choice, reporter)
    own = own_wheel.own_requirements("train", "notebook")
    inputs = [*choice.pins, *own, *_TOOLS, *spec.packages, *wanted.locked]
    head = LockHead(
        torch=choice.installed.torch,
        variant=choice.installed.variant,
        python=minor(choice.python.version),
        platform=f"{platform.system().lower()}-{platform.machine()}",
        inputs=inputs_digest([*inputs, *wanted.options]),
        unlocked=tuple(wanted.unlocked),
    )
    found = [] if relock else [read_lock(spec.project / LOCK_NAME), own_lock(paths)]
    earlier = [lock for lock in found if lock is not None]
    fitting = next((lock for lock in earlier if lock.head == head), None)
    plan = plan_for(spec, paths, choice, wanted.unlocked, have_lock=fitting is not None)
    if fitting is None:
        reporter.step("choosing matching versions")
        fitting = install.resolve_lock(plan, paths, head, [*wanted.options, *inputs], next(iter(earlier), None))
    return Decision(choice, plan, fitting)


def is_beside(spec: DeckSpec) -> bool:
    """Whether this is a second deck, beside the project's own."""
    return bool(spec.name) and deck_of(spec.project) != spec.name


def shared_lock(spec: DeckSpec) -> Lock | None:
    """Return the lock that the project shares; None if there is none, it is damaged, or is another deck's."""
    if is_beside(spec):
        return None
    try:
        return read_lock(spec.project / LOCK_NAME)
    except UsageError:
        return None  # the deck's own is as good as before


def release_of(spec: DeckSpec, shared: Lock | None) -> str:
    """Return the stack to ask for: the wish, else the release that the project's lock names.

    So everyone who works on the project has the torch that one of them chose; the build for it is the one that fits
    each machine.
    """
    if spec.stack or shared is None or shared.head.torch not in listed_releases():
        return spec.stack
    return shared.head.torch


def _fit(spec: DeckSpec, wanted: ProjectRequirements, choice: Choice, reporter: Reporter) -> ProjectRequirements:
    """Hold the project's requirements against the stack."""
    conflicts = judge_pins(wanted, choice.companions, choice.listed)
    if not spec.keep_stack:
        raise_for_pins(conflicts)
    for conflict in conflicts:
        reporter.note(f"left out: {conflict.title}")
    for line, reason in wanted.dropped:
        reporter.note(f"left out of the project's requirements: {line} ({reason})")
    for text in wanted.notes:
        reporter.note(text)
    return without_stack(wanted, choice.companions)


def plan_for(spec: DeckSpec, paths: DeckPaths, choice: Choice, unlocked: list[str], *, have_lock: bool) -> Plan:
    """Return the plan of a deck whose stack and Python are chosen."""
    return plan_venv(
        paths,
        python=choice.python.path,
        backend=choice.backend,
        unlocked=unlocked,
        lock_file=spec.project / LOCK_NAME,
        have_lock=have_lock,
        notebooks=spec.notebooks,
        host=spec.host,
        port=spec.port,
    )


def preview_of(spec: DeckSpec, paths: DeckPaths, decision: Decision) -> Preview:
    """Return what will be downloaded and stored, and where."""
    choice, lock = decision.choice, decision.lock
    have = installed_packages(paths.environment)
    complete = all(name in have and have[name][0] == version for name, version in lock.versions.items())
    download = 0
    if not complete and install.would_download(decision.plan, paths, choice.python, lock):
        download = lock.download_bytes
    return Preview(
        deck=paths.name,
        torch=choice.installed.torch,
        variant=choice.installed.variant,
        cuda=choice.installed.cuda or "",
        python=choice.python.version,
        reasons=choice.reasons,
        num_packages=len(lock.packages),
        download_bytes=download,
        stored_bytes=0 if have else int(lock.download_bytes * _STORED_PER_DOWNLOADED),
        environment=str(paths.environment),
        notebooks=str(spec.notebooks),
        free_bytes=install.free_bytes(paths.environment),
        findings=choice.findings,
    )


def check_space(preview: Preview) -> None:
    """Stop before anything is downloaded that cannot be stored.

    What uv's cache already holds is linked, not copied, where it lies on the same disk, and is not counted.

    Raises:
        DiskError: There is too little space.
    """
    needed = int(preview.download_bytes * _STORED_PER_DOWNLOADED)
    if preview.stored_bytes > needed and install.copies_from_cache(Path(preview.environment)):
        needed = preview.stored_bytes
    if preview.free_bytes < needed:
        raise DiskError(
            f"not enough space for the environment in {preview.environment}",
            rule="disk-full",
            found=f"{preview.free_bytes / 1e9:.1f} GB free",
            needs=f"about {needed / 1e9:.1f} GB",
            mend=("torchdeck up --dir /another/disk/env", "uv cache prune"),
        )


def plan_up(spec: DeckSpec, reporter: Reporter) -> tuple[Plan, Preview]:
    """Return what ``up`` would do, having changed nothing but scratch files.

    Raises:
        TorchdeckError: No stack fits, or the versions cannot be chosen.
    """
    name = deck_of(spec.project, spec.name)
    state = load_state(name)
    spec = inherit(spec, state.asked if state else {})
    wanted = read_requirements(spec.project, spec.requirements)
    real = deck_paths(name, spec)
    with tempfile.TemporaryDirectory(prefix="torchdeck-plan-") as scratch:
        folder = Path(scratch) / name
        folder.mkdir()
        paths = DeckPaths(folder, real.environment)
        decision = decide(spec, paths, wanted, reporter)
        preview = preview_of(spec, paths, decision)
    resolved = any(step.name == "resolve" for step in decision.plan.steps)
    return plan_for(spec, real, decision.choice, list(decision.lock.head.unlocked), have_lock=not resolved), preview
