"""What stands before a line of a log is taken away; what it says is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdeck.machine.explain.lines import MAX_CHARS, clean_line

SAID = "RuntimeError: CUDA error: out of memory"


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", None),
        ("[rank3]: ", 3),
        ("[default0]:", 0),
        ("Rank 12: ", 12),
        ("2026-11-02T10:11:12 worker-3 | ", None),
        ("2026-11-02T10:11:12.123456Z ", None),
        ("[2026-11-02 10:11:12,345] ", None),
        ("2026-11-02 10:11:12,345 - ", None),
        ("10:11:12.345 ", None),
        ("Nov  2 10:11:12 node17 python3[4711]: ", None),
        ("[  123.456789] ", None),
        ("[pod/trainer-0/main] ", None),
        ("trainer-1  | ", None),
        ("7: ", None),
        ("(RayTrainWorker pid=4711, ip=10.0.0.1) ", None),
        ("\x1b[31m", None),
        ("\x1b[36mtrainer-1  |\x1b[0m [rank5]: ", 5),
        ("2026-11-02T10:11:12.1Z stdout F [rank1]: ", 1),
        ("Downloading 10%\rDownloading 20%\r", None),
    ],
)
def test_a_prefix_is_taken_away(prefix: str, rank: int | None) -> None:
    text, found = clean_line(prefix + SAID + "\x1b[0m" * (prefix.startswith("\x1b[31m")))
    assert text == SAID
    assert found == rank


@pytest.mark.parametrize(
    "line",
    [
        'File "/opt/train.py", line 12, in <module>',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "bash: nvcc: command not found",
        "12.4",
        "error: could not select device driver",
    ],
)
def test_a_line_without_prefix_stays_as_it_is(line: str) -> None:
    assert clean_line(line) == (line, None)


def test_a_line_without_end_is_cut() -> None:
    text, _ = clean_line("x" * 1_000_000)
    assert len(text) == MAX_CHARS


@given(st.text(max_size=300))
def test_no_text_breaks_it_and_no_escape_is_left(line: str) -> None:
    text, _ = clean_line(line.replace("\n", " "))
    assert "\x1b[" not in text
