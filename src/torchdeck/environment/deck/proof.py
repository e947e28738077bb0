"""The proof that a deck works: real kernels in its own Python, in a process with a time limit.

The checks themselves are ``torchdeck.training.checks``, which runs inside the deck; here they are started, read,
and held against the lock. A crash or a hang names the check in which it happened.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec

from torchdeck import runner
from torchdeck.environment.deck.files import deck_environment
from torchdeck.environment.deck.integrity import inspect
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.report import Reporter, Silent
from torchdeck.environment.deck.state import DeckState, write_atomic
from torchdeck.environment.lock import Lock
from torchdeck.environment.records import Check, Proof

TIMEOUT_S = 600.0
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
    argv = [str(paths.python), "-I", "-m", "torchdeck.training.checks", "--json-lines"]
    # A deck that was made for a GPU, and no longer reaches it, is not verified by what the CPU computes.
    argv += ["--need-cuda"] if state.gpu else []
    done = runner.run(
        argv,
        timeout_s=timeout_s,
        env=deck_environment(variables, os.environ),
        cwd=paths.folder,
        on_line=lambda line: _tell(line, reporter),
    )
    # Only standard output holds the report: what a library prints on the other stream is none of it.
    reading = _Reading(done.stdout)
    checks = [files, *reading.checks]
    trouble = _trouble(done, reading, timeout_s)
    if trouble is not None:
        checks.append(trouble)
    checks.append(_check_versions(reading.versions, lock))
    proof = Proof(
        deck=state.name,
        torch=reading.versions.get("torch", ""),
        cuda=reading.versions.get("cuda", "") or "",
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


def _document(line: str) -> dict[str, Any]:
    """Return a line of the checks as a record; empty for anything else, such as a library's warning."""
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _tell(line: str, reporter: Reporter) -> None:
    document = _document(line)
    if "start" in document:
        reporter.progress(0, 0, f"{document['start']} {document.get('subject', '')}".strip())


class _Reading:
    """What the checks said: how each ended, the versions, and the one that was under way at the end."""

    def __init__(self, stdout: str) -> None:
        self.checks: list[Check] = []
        self.versions: dict[str, Any] = {}
        self.under_way = ""
        for line in stdout.splitlines():
            document = _document(line)
            if "start" in document:
                self.under_way = f"{document['start']} {document.get('subject', '')}".strip()
            elif "versions" in document:
                self.versions = document["versions"]
            elif "outcome" in document:
                self.checks.append(msgspec.convert(document, Check))
                self.under_way = ""


def _trouble(done: runner.Completed, reading: _Reading, timeout_s: float) -> Check | None:
    """Return what went wrong outside any check: a hang, a crash, a Python that does not start."""
    name, _, subject = reading.under_way.partition(" ")
    tail = " | ".join(line for line in done.stderr.strip().splitlines()[-3:])
    if done.timed_out:
        return Check(name=name or "checks", subject=subject, outcome="fail", detail=f"no end after {timeout_s:.0f} s")
    if done.rc < 0:
        signal_name = signal.Signals(-done.rc).name
        return Check(name=name or "checks", subject=subject, outcome="fail", detail=f"ended by {signal_name}. {tail}")
    failed = any(check.outcome == "fail" for check in reading.checks)
    if done.rc not in (0, 1) or not reading.checks or reading.under_way or (done.rc == 1 and not failed):
        return Check(name=name or "import", subject=subject, outcome="fail", detail=tail or f"exit code {done.rc}")
    return None


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


def _check_versions(versions: dict[str, Any], lock: Lock) -> Check:
    """Hold what torch says of itself against the lock."""
    wanted = lock.head.torch.split("+")[0]
    found = str(versions.get("torch") or "").split("+")[0]
    if not found:
        return Check(name="versions", outcome="skip", detail="torch did not tell its version")
    if found != wanted:
        return Check(name="versions", outcome="fail", detail=f"torch says {found}, the lock has {wanted}")
    return Check(name="versions", detail=f"torch {found}, as locked")
