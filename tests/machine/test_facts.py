"""Fact files: what was saved is read again, and what is damaged or hostile gets a clear error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import h100

from torchdeck.errors import UsageError
from torchdeck.machine.facts import Missing, decode_facts, encode_facts
from torchdeck.machine.facts.aggregate import MAX_BYTES
from torchdeck.machine.probes import gather


def test_facts_survive_being_written_and_read() -> None:
    assert decode_facts(encode_facts(h100()), "x") == h100()


def test_the_facts_of_this_machine_survive_being_written_and_read() -> None:
    facts = gather()
    assert decode_facts(encode_facts(facts), "x") == facts
    assert not isinstance(facts.system, Missing)


@settings(max_examples=100, deadline=None)
@given(st.integers(min_value=0, max_value=len(encode_facts(h100())) - 3))
def test_a_file_that_was_cut_off_is_refused(length: int) -> None:
    with pytest.raises(UsageError):
        decode_facts(encode_facts(h100())[:length], "host.json")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_content_makes_reading_fail_otherwise_than_by_a_usage_error(data: bytes) -> None:
    with pytest.raises(UsageError):
        decode_facts(data, "host.json")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"schema": "torchdeck.facts/2"}', "another version"),
        (b'{"schema": "something"}', "not a fact file"),
        (b"[1, 2]", "not a fact file"),
        (b"[" * 100_000, "not a fact file"),
        (b" " * (MAX_BYTES + 1), "too large"),
    ],
)
def test_each_wrong_file_is_told_apart(data: bytes, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        decode_facts(data, "host.json")


def test_a_value_of_the_wrong_kind_is_named() -> None:
    document = json.loads(encode_facts(h100()))
    document["storage"]["tmp"]["free_bytes"] = "much"
    with pytest.raises(UsageError) as caught:
        decode_facts(json.dumps(document).encode(), "host.json")
    assert "free_bytes" in caught.value.found


def test_facts_name_no_home_folder() -> None:
    from pathlib import Path

    text = encode_facts(gather()).decode()
    assert f'"{Path.home()}' not in text
