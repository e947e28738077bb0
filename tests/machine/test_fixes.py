"""Mends that run: only for rules that have one, with a copy of what changes, and an honest end when one fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from machine_hosts import changed, h100

from torchdeck.errors import OutsideError, ToolError
from torchdeck.machine.fixes import Fix, FixStep, carry_out, plan_fixes
from torchdeck.machine.fixes.plan import fixable_rules
from torchdeck.machine.records import Finding


def found(*rules: str) -> list[Finding]:
    return [Finding(rule=rule, severity="warning", title=rule) for rule in rules]


def fix(*steps: FixStep, as_root: bool = False) -> Fix:
    return Fix(rule="test-rule", title="mend the test", steps=steps, undo="nothing", as_root=as_root)


def test_only_findings_that_have_a_safe_mend_get_a_fix_and_each_once() -> None:
    fixes = plan_fixes(found("driver-too-old", "cdi-spec-stale", "disk-full", "cdi-spec-stale"), h100())
    assert [fix.rule for fix in fixes] == ["cdi-spec-stale", "disk-full"]


def test_one_rule_can_be_chosen() -> None:
    assert [fix.rule for fix in plan_fixes(found("cdi-spec-stale", "disk-full"), h100(), "disk-full")] == ["disk-full"]


def test_every_fix_says_how_it_is_undone() -> None:
    fixes = plan_fixes(found(*fixable_rules()), h100())
    assert len(fixes) == len(fixable_rules())
    for fix in fixes:
        assert fix.undo
        assert fix.title
        assert all(step.argv for step in fix.steps)


def test_shared_memory_of_a_container_is_not_remounted_from_inside() -> None:
    assert plan_fixes(found("shm-too-small"), changed(h100(), "system.container", "/.dockerenv")) == []


def test_a_file_is_copied_before_it_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("old")
    copies = carry_out(fix(FixStep(argv=("sh", "-c", f"echo new > {file}"), backup=str(file))))
    assert file.read_text() == "new\n"
    (copy,) = tmp_path.glob("config.toml.torchdeck-*")
    assert copy.read_text() == "old"
    assert str(copy) in copies[0]


def test_the_first_command_that_fails_ends_it_with_its_words(tmp_path: Path) -> None:
    steps = (
        FixStep(argv=("sh", "-c", "echo not today >&2; exit 3")),
        FixStep(argv=("touch", str(tmp_path / "second"))),
    )
    with pytest.raises(ToolError) as caught:
        carry_out(fix(*steps))
    assert "not today" in caught.value.detail
    assert "ended with 3" in caught.value.found
    assert not (tmp_path / "second").exists()


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolError, match="could not mend the test") as caught:
        carry_out(fix(FixStep(argv=("no-such-program-here", "--now"))))
    assert "no-such-program-here" in caught.value.found


def test_what_only_root_may_do_is_refused_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(OutsideError) as caught:
        carry_out(fix(FixStep(argv=("true",)), as_root=True))
    assert caught.value.mend[0].startswith("sudo true")
