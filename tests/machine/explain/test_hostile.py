"""Logs that mean harm: no crash, no control code that comes through, no time that grows faster than the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdeck.machine.catalogue.kinds import signatures
from torchdeck.machine.explain import explain
from torchdeck.machine.explain.explain import fill
from torchdeck.machine.explain.lines import lines_of, numbered
from torchdeck.machine.explain.scan import patterns

PIECES = [text for signature in signatures() for text in signature.examples]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=2000))
def test_no_text_breaks_it(text: str) -> None:
    explain(numbered(lines_of(text)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES or [""]), max_size=4), st.text(max_size=40), st.integers(0, 400))
def test_examples_cut_and_mixed_break_nothing(pieces: list[str], between: str, cut: int) -> None:
    report = explain(numbered(lines_of(between.join(pieces)[cut:])))
    for finding in report.findings:
        assert 0 <= finding.confidence <= 1
        assert finding.evidence
        assert finding.mend


def test_control_codes_do_not_come_through() -> None:
    report = explain(numbered(lines_of("\x1b]0;owned\x07RuntimeError: \x1b[2JCUDA error: \x00\x08evil\x9b31m")))
    shown = "".join(line.text for finding in report.findings for line in finding.evidence)
    shown += "".join(line.text for line in report.not_known)
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "CUDA error: ",
        "[rank0]: " * 30,
        'File "x", line 1\n',
        "(((((",
        "Tried to allocate 1 GiB ",
        "\x1b[",
        "é",
        " | ",
    ],
)
@pytest.mark.parametrize("sizes", [(1_000, 1_000_000), pytest.param((10_000, 10_000_000), marks=pytest.mark.full)])
def test_time_grows_no_faster_than_the_text(unit: str, sizes: tuple[int, int]) -> None:
    explain(numbered(lines_of("warm up")))

    def seconds(num_chars: int) -> float:
        text = unit * (num_chars // len(unit))
        best = 1e9
        for _ in range(3):
            started = time.process_time()
            explain(numbered(lines_of(text)))
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(sizes[0]), seconds(sizes[1])
    # A thousand times the text, with room for what does not grow; quadratic would be a million times.
    assert large < 3000 * max(small, 0.0005)


def test_the_filter_finds_what_each_pattern_finds_alone() -> None:
    """The filter of all patterns neither loses nor invents one."""
    import re2

    known = patterns()
    for text in PIECES[:200]:
        for line in text.splitlines():
            alone = {number for number, pattern in enumerate(known.patterns) if re2.search(pattern, line.rstrip())}
            found = {number for number in known.in_line(line.rstrip()) if number < len(known.patterns)}
            assert found == alone


@pytest.mark.parametrize("value", ["$(reboot)", "`id`", "a; rm -rf /", "x' or '1", "a|b", "a\nb", "a&b", 'a"b'])
def test_no_value_of_a_log_can_act_on_a_shell(value: str) -> None:
    assert fill("kill {port}", {"port": value}) == "kill <port>"


def test_a_plain_value_is_filled_in_and_a_missing_one_is_named() -> None:
    assert fill("torchdeck up --stack {stack} {x}", {"stack": "2.7-cu128"}) == "torchdeck up --stack 2.7-cu128 <x>"


def test_a_plain_training_log_is_passed_over_quickly() -> None:
    """No pattern is so general that the lines which every job prints must be looked at one by one."""
    known = patterns()
    usual = [
        "2026-11-02 10:11:12,345 INFO train: epoch 3 step 1234 loss 0.4321 lr 3.0e-04 tokens/s 91234 grad_norm 0.71",
        "Epoch 3:  45%|████▌     | 450/1000 [00:12<00:15, 36.1it/s, loss=0.432]",
        "{'loss': 0.4321, 'grad_norm': 0.7, 'learning_rate': 3e-05, 'epoch': 1.2}",
        "[12/40] train acc 0.812 val acc 0.797 time 12.3s mem 10.2GB",
        "Step 100: train/loss=1.234, eval/accuracy=0.81",
    ]
    assert [line for line in usual if known.may_be_in(line) and "mem" not in line] == []
