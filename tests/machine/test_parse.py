"""What people write for drivers, GPUs, Pythons and stacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdeck.errors import UsageError
from torchdeck.machine.stack.parse import parse_arch, parse_ccs, parse_driver, parse_python, parse_stack

PARSERS: list[Callable[[str], object]] = [parse_arch, parse_ccs, parse_driver, parse_python, parse_stack]


@pytest.mark.parametrize(
    ("parser", "text", "value"),
    [
        (parse_driver, "535.104.05", "535.104.05"),
        (parse_driver, "535", "535"),
        (parse_driver, " None ", None),
        (parse_ccs, "9.0", ((9, 0),)),
        (parse_ccs, "sm_120", ((12, 0),)),
        (parse_ccs, "90a", ((9, 0),)),
        (parse_ccs, "8.6, 12.0,8.6", ((8, 6), (12, 0))),
        (parse_python, "3.11.7", "3.11"),
        (parse_python, "3.9", "3.9"),
        (parse_arch, "AMD64", "x86_64"),
        (parse_arch, "arm64", "aarch64"),
        (parse_arch, "riscv64", "riscv64"),
        (parse_stack, "", ("", "")),
        (parse_stack, "2.6", ("2.6", "")),
        (parse_stack, "2.6.0+cu124", ("2.6.0", "cu124")),
        (parse_stack, "2.7-CU128", ("2.7", "cu128")),
        (parse_stack, "latest", ("latest", "")),
        (parse_stack, "latest-cpu", ("latest", "cpu")),
        (parse_stack, "cpu", ("", "cpu")),
    ],
)
def test_each_spelling_that_people_use_is_understood(parser: Callable[[str], object], text: str, value: object) -> None:
    assert parser(text) == value


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (parse_driver, "new"),
        (parse_driver, "535.x"),
        (parse_driver, ""),
        (parse_driver, "535.104.05.1.2"),
        (parse_ccs, "9"),
        (parse_ccs, "9.0,"),
        (parse_ccs, "H100"),
        (parse_python, "3"),
        (parse_python, "3.13t"),
        (parse_python, "python3.11"),
        (parse_arch, "x86 64"),
        (parse_stack, "two"),
        (parse_stack, "2.6-rocm"),
        (parse_stack, "../2.6"),
    ],
)
def test_what_is_not_understood_says_what_would_be_right(parser: Callable[[str], object], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parser(text)
    assert caught.value.needs


@given(st.text(max_size=40))
def test_no_text_makes_a_parser_fail_otherwise_than_by_a_usage_error(text: str) -> None:
    for parser in PARSERS:
        with contextlib.suppress(UsageError):
            parser(text)
