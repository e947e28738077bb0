"""``torchdeck upgrade``: to another stack, with everything it changes shown first.

The new versions are chosen without touching the deck. If the new stack cannot be installed or does not compute
right, the deck goes back to the lock that it had.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from torchdeck.environment.deck.decide import Decision, decide, own_lock, preview_of
from torchdeck.environment.deck.integrity import installed_packages
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.requirements import read_requirements
from torchdeck.environment.deck.spec import DeckSpec, inherit
from torchdeck.environment.deck.state import DeckState, load_state, paths_of, save_state
from torchdeck.environment.deck.up import Options, UpResult, up
from torchdeck.environment.lock import LOCK_NAME, Lock, is_protected, render_lock
from torchdeck.environment.records import Change, UpgradeReport
from torchdeck.errors import FindingsError, TorchdeckError


def plan_upgrade(spec: DeckSpec, state: DeckState, to: str, reporter: Reporter) -> UpgradeReport:
    """Return what an upgrade would change, having changed nothing.

    Args:
        spec: The deck as it is asked for now.
        state: The deck as it is.
        to: The stack to go to: ``2.7``, ``2.8-cu128``, ``latest``.
        reporter: Is told what is being done.

    Raises:
        TorchdeckError: No such stack fits this machine, or the versions cannot be chosen.
    """
    aim = _aim(spec, state, to)
    wanted = read_requirements(aim.project, aim.requirements)
    real = paths_of(state.name, state.environment)
    with tempfile.TemporaryDirectory(prefix="torchdeck-plan-") as scratch:
        folder = Path(scratch) / state.name
        folder.mkdir()
        paths = DeckPaths(folder, real.environment)
        decision = decide(aim, paths, wanted, reporter, relock=True)
        preview = preview_of(aim, paths, decision)
    return _compare(state, own_lock(real), decision, preview.download_bytes)


def _aim(spec: DeckSpec, state: DeckState, to: str) -> DeckSpec:
    """Return the deck's own request with another stack."""
    kept = inherit(spec, state.asked)
    return msgspec.structs.replace(kept, stack=to, name=state.name, given=kept.given | {"stack"})


def exact(torch: str, variant: str, index: str) -> str:
    """Return a build as ``--stack`` takes it, so that it stays the same when newer ones appear."""
    return torch if index == "pypi" else f"{torch}-{variant}"


def _compare(state: DeckState, before: Lock | None, decision: Decision, download_bytes: int) -> UpgradeReport:
    old = before.versions if before else {}
    new = decision.lock.versions
    changes = [
        Change(name=name, old=old.get(name, ""), new=new.get(name, ""))
        for name in sorted({*old, *new}, key=lambda name: (not is_protected(name), name))
        if old.get(name) != new.get(name)
    ]
    build = decision.choice.installed
    notes = list(decision.choice.reasons)
    if state.python != decision.choice.python.version:
        notes.append(f"Python {state.python} → {decision.choice.python.version}: the environment is made anew")
    own = _by_hand(paths_of(state.name, state.environment), before)
    if own and build.torch != state.torch:
        notes.append(f"installed by you, not checked against the new torch: {', '.join(own[:8])}")
    notes += [finding.title for finding in decision.choice.findings if finding.severity in ("error", "warning")]
    return UpgradeReport(
        deck=state.name,
        old_torch=state.torch,
        old_variant=state.variant,
        new_torch=build.torch,
        new_variant=build.variant,
        new_stack=exact(build.torch, build.variant, build.index),
        python=decision.choice.python.version,
        changes=tuple(changes),
        notes=tuple(notes),
        download_bytes=download_bytes,
    )


def _by_hand(paths: DeckPaths, lock: Lock | None) -> list[str]:
    """Return the packages that are in the environment beside those of the lock."""
    known = {*(lock.versions if lock else {}), "torchdeck"}
    return sorted(name for name in installed_packages(paths.environment) if name not in known)


def upgrade(
    spec: DeckSpec, state: DeckState, to: str, reporter: Reporter, on_rollback: Callable[[TorchdeckError], None]
) -> UpResult:
    """Bring a deck to another stack; if that fails, back to what it was.

    Raises:
        FindingsError: It failed, and the deck is as it was before.
        TorchdeckError: It failed, and going back failed too; ``torchdeck up`` goes on.
    """
    paths = paths_of(state.name, state.environment)
    before = own_lock(paths)
    aim = _aim(spec, state, to)
    shared = spec.project / LOCK_NAME
    shared_text = shared.read_bytes() if shared.is_file() else None
    start_lab = state.lab is not None
    try:
        return up(aim, reporter, options=Options(relock=True, start_lab=start_lab))
    except TorchdeckError as error:
        if before is None:
            raise
        on_rollback(error)
        if shared_text is not None:
            shared.write_bytes(shared_text)
        paths.lock.write_text(render_lock(before), encoding="utf-8")
        now = load_state(state.name) or state
        save_state(now.but(ready=False, lab=None))
        back = exact(state.torch, state.variant, state.index)
        up(msgspec.structs.replace(aim, stack=back), reporter, options=Options(start_lab=start_lab))
        raise FindingsError(
            f"the upgrade to {to} failed; the deck is back on torch {state.torch}",
            found=f"{error.title}: {error.found}" if error.found else error.title,
            mend=error.mend or "torchdeck logs --install",
            detail=error.detail,
        ) from error
