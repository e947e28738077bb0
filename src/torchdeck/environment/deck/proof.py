"""The proof that a deck works: its files and versions held against the lock, real kernels run in its own Python."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchdeck.environment.deck.checking import INSTALLED, TIMEOUT_S, run_checks
from torchdeck.environment.deck.files import deck_environment
from torchdeck.environment.deck.integrity import inspect
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.report import Reporter, Silent
from torchdeck.environment.deck.state import DeckState, write_atomic
from torchdeck.environment.lock import Lock
from torchdeck.environment.records import Check, Proof

# Without these, nothing on the deck can be trusted; a failure of another check leaves a deck that is still of use.
VITAL = ("import", "matmul", "files", "versions")


def verify(
    state: DeckState,
    paths: DeckPaths,
    lock: Lock,
    variables: dict[str, str],
    reporter: Reporter | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Proof:
    """Prove a deck, and keep the proof beside its state."""
    started = time.monotonic()
    reporter = reporter or Silent()
    files = _check_files(paths, lock)
    # A deck that was made for a GPU, and no longer reaches it, is not verified by what the CPU computes.
    need_cuda = ["--need-cuda"] if state.gpu else []
    checked = run_checks(
        [str(paths.python), *INSTALLED, *need_cuda],
        env=deck_environment(variables, os.environ),
        cwd=paths.folder,
        timeout_s=timeout_s,
        reporter=reporter,
    )
    checks = [files, *checked.checks, _check_versions(checked.versions, lock)]
    proof = Proof(
        deck=state.name,
        torch=checked.versions.get("torch", ""),
        cuda=checked.versions.get("cuda", "") or "",
        passed=all(check.outcome != "fail" for check in checks),
        checks=tuple(checks),
        wall_s=round(time.monotonic() - started, 1),
    )
    write_atomic(proof_file(paths), msgspec.json.format(msgspec.json.encode(proof), indent=2) + b"\n")
    return proof


def proof_file(paths: DeckPaths) -> Path:
    """Return where the last proof is kept."""
    return paths.folder / "proof.json"


def failed_vitally(proof: Proof) -> bool:
    """Whether a check failed without which nothing can be trusted."""
    return any(check.outcome == "fail" and check.name in VITAL for check in proof.checks)


def _check_files(paths: DeckPaths, lock: Lock) -> Check:
    started = time.monotonic()
    damage = inspect(paths.environment, lock)
    detail = damage.describe() if damage else f"{len(lock.packages)} packages as locked"
    return Check(
        name="files",
        outcome="fail" if damage else "pass",
        detail=detail,
        wall_ms=round((time.monotonic() - started) * 1000, 1),
    )


def _check_versions(versions: Mapping[str, Any], lock: Lock) -> Check:
    """Hold what torch says of itself against the lock."""
    wanted = lock.head.torch.split("+")[0]
    found = str(versions.get("torch") or "").split("+")[0]
    if not found:
        return Check(name="versions", outcome="skip", detail="torch did not tell its version")
    if found != wanted:
        return Check(name="versions", outcome="fail", detail=f"torch says {found}, the lock has {wanted}")
    return Check(name="versions", detail=f"torch {found}, as locked")
