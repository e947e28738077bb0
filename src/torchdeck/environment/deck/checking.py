"""Starting the checks in a Python that has torch, and reading what they say.

The checks themselves are ``torchdeck.training.checks``. They run in a process of their own with a time limit, so that
a crash or a hang names the check in which it happened and takes nothing else with it.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from torchdeck import runner
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.records import Check

TIMEOUT_S = 600.0
# What is installed in a deck, and what runs in any other Python from its files.
INSTALLED = ("-I", "-m", "torchdeck.training.checks")


def from_files() -> tuple[str, ...]:
    """Return the arguments that run the checks in a Python without torchdeck."""
    return ("-I", str(resources.files("torchdeck") / "training" / "checks"))


@dataclass(frozen=True)
class Checked:
    """What the checks said: how each ended, and the versions that torch told of itself and its libraries."""

    checks: tuple[Check, ...]
    versions: Mapping[str, Any]


def run_checks(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float, reporter: Reporter
) -> Checked:
    """Run the checks to their end, or to the time limit; trouble outside any check is one more that failed."""
    done = runner.run(
        [*argv, "--json-lines"], timeout_s=timeout_s, env=env, cwd=cwd, on_line=lambda line: _tell(line, reporter)
    )
    # Only standard output holds the report: what a library prints on the other stream is none of it.
    reading = _Reading(done.stdout)
    trouble = _trouble(done, reading, timeout_s)
    return Checked((*reading.checks, *([trouble] if trouble is not None else [])), reading.versions)


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
