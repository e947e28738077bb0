"""``doctor --deep``: every check that there is, in the project's deck or in any Python with torch, as findings."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from torchdeck.environment.deck.checking import INSTALLED, TIMEOUT_S, from_files, run_checks
from torchdeck.environment.deck.environ import environment_of
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.state import deck_of, load_state, paths_of
from torchdeck.environment.records import Check, Proof
from torchdeck.errors import UsageError
from torchdeck.machine.records import Finding


def check_deeply(project: Path, python: Path | None, reporter: Reporter, timeout_s: float = TIMEOUT_S) -> Proof:
    """Run every check.

    Args:
        project: Whose deck is meant, where no Python is named.
        python: Another Python with torch in it.
        reporter: Is told which check is under way.
        timeout_s: Time limit of all checks together.

    Raises:
        UsageError: No Python is named, and the project has no complete deck.
    """
    started = time.monotonic()
    name, env = "", {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    argv = [str(python), *from_files()]
    if python is None:
        name = deck_of(project)
        state = load_state(name)
        if state is None or not state.ready:
            raise UsageError(
                "there is no torch to check deeply",
                found=f"no complete deck for {project}, and no --python",
                needs="a deck, or a Python with torch in it",
                mend=("torchdeck up", "torchdeck doctor --deep --python /path/to/python"),
            )
        argv = [str(paths_of(state.name, state.environment).python), *INSTALLED]
        argv += ["--need-cuda"] if state.gpu else []
        env = environment_of(state, os.environ)
    with tempfile.TemporaryDirectory(prefix="torchdeck-deep-") as folder:
        checked = run_checks([*argv, "--deep"], env=env, cwd=Path(folder), timeout_s=timeout_s, reporter=reporter)
    return Proof(
        deck=name,
        torch=str(checked.versions.get("torch") or ""),
        cuda=str(checked.versions.get("cuda") or ""),
        passed=all(check.outcome != "fail" for check in checked.checks),
        checks=checked.checks,
        wall_s=round(time.monotonic() - started, 1),
    )


def findings_of(proof: Proof) -> list[Finding]:
    """Return each check that failed as a finding."""
    return [_finding(check, proof) for check in proof.checks if check.outcome == "fail"]


def _finding(check: Check, proof: Proof) -> Finding:
    what = f"{check.name} {check.subject}".strip()
    return Finding(
        rule="deep-check-failed",
        severity="error",
        title=f"{what}: {check.detail}",
        cause="A real computation did not end as it must.",
        evidence=(f"torch {proof.torch or 'not imported'}, after {check.wall_ms / 1000:.1f} s",),
        needs="the check to pass",
        mend=("torchdeck up --repair", "torchdeck verify") if proof.deck else ("torchdeck up",),
    )
