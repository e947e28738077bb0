"""What a run of the checks is taken for: every way to end but the right one is a failure that names its check."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from torchdeck.environment.deck.checking import Checked, run_checks
from torchdeck.environment.deck.deep import check_deeply, findings_of
from torchdeck.environment.deck.report import Silent
from torchdeck.environment.records import Check, Proof
from torchdeck.errors import UsageError

PASS = {"name": "matmul", "subject": "cpu", "outcome": "pass", "detail": "right", "wall_ms": 1.0}
START = {"start": "compile", "subject": "cpu"}


def run(tmp_path: Path, *lines: object, then: str = "", timeout_s: float = 20) -> Checked:
    """Run a program that prints lines as the checks do, and then does something else."""
    program = tmp_path / "checks.py"
    text = "\n".join(
        f"print({json.dumps(line if isinstance(line, str) else json.dumps(line))}, flush=True)" for line in lines
    )
    program.write_text(f"import os, sys, time, signal\n{text}\n{then}\n")
    return run_checks(
        [sys.executable, str(program)], env=os.environ, cwd=tmp_path, timeout_s=timeout_s, reporter=Silent()
    )


def failed(checked: Checked) -> list[Check]:
    return [check for check in checked.checks if check.outcome == "fail"]


def test_checks_that_pass_are_all_there_is(tmp_path: Path) -> None:
    checked = run(tmp_path, {"versions": {"torch": "2.6.0+cu124"}}, PASS)
    assert [check.name for check in checked.checks] == ["matmul"]
    assert checked.versions["torch"] == "2.6.0+cu124"
    assert failed(checked) == []


@pytest.mark.parametrize(
    ("then", "word"),
    [
        ("os._exit(0)", "exit code 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("print('gone wrong', file=sys.stderr); sys.exit(3)", "gone wrong"),
        ("sys.exit(1)", "exit code 1"),
    ],
)
def test_whatever_ends_a_check_under_way_is_its_failure(tmp_path: Path, then: str, word: str) -> None:
    (check,) = failed(run(tmp_path, PASS, START, then=then))
    assert (check.name, check.subject) == ("compile", "cpu")
    assert word in check.detail


def test_a_hang_is_named_after_the_time_limit(tmp_path: Path) -> None:
    (check,) = failed(run(tmp_path, PASS, START, then="time.sleep(60)", timeout_s=2))
    assert check.name == "compile"
    assert "no end after 2 s" in check.detail


def test_exit_code_1_with_no_failed_check_is_a_failure(tmp_path: Path) -> None:
    (check,) = failed(run(tmp_path, PASS, then="sys.exit(1)"))
    assert check.outcome == "fail"


def test_a_program_that_says_nothing_has_failed(tmp_path: Path) -> None:
    (check,) = failed(run(tmp_path))
    assert check.name == "import"


def test_what_libraries_print_is_no_check(tmp_path: Path) -> None:
    other = 'print(\'{"name": "evil", "outcome": "fail"}\', file=sys.stderr)'
    checked = run(tmp_path, "NCCL version 2.21", "[1]", "{broken", PASS, then=other)
    assert [check.name for check in checked.checks] == ["matmul"]


def test_deep_checks_need_a_deck_or_a_python(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_deeply(tmp_path, None, Silent())
    assert "torchdeck up" in caught.value.mend


def test_a_failed_check_becomes_a_finding_with_its_words() -> None:
    bad = Check(name="ranks", subject="gloo, 2 processes", outcome="fail", detail="the sum came back wrong")
    (finding,) = findings_of(Proof(deck="digits", torch="2.6.0", checks=(bad, Check(name="import"))))
    assert finding.severity == "error"
    assert "the sum came back wrong" in finding.title


@pytest.mark.deck
def test_every_deep_check_passes_in_a_python_that_has_only_torch(deck_python: Path, tmp_path: Path) -> None:
    proof = check_deeply(tmp_path, deck_python, Silent())
    assert proof.passed, proof
    outcomes = {f"{check.name} {check.subject}": check.outcome for check in proof.checks}
    assert outcomes["dataloader 2 workers"] == "pass"
    assert outcomes["ranks gloo, 2 processes"] == "pass"
