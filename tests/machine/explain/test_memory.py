"""Out of memory, told apart by its own numbers, in the words of old and new releases."""

from __future__ import annotations

import pytest

from torchdeck.machine.explain.lines import Line
from torchdeck.machine.explain.memory import judge_memory, read_numbers

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.15 GiB of "
    "which {free} is free. {others}Including non-PyTorch memory, this process has {own} memory in use. Of the "
    "allocated memory {allocated} is allocated by PyTorch, and {pieces} is reserved by PyTorch but unallocated."
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate {tried} (GPU 0; 10.76 GiB total capacity; {allocated} already "
    "allocated; {free} free; {reserved} reserved in total by PyTorch)"
)


def kind_of(text: str) -> str:
    return judge_memory([Line(1, text)], set())[0][0]


def new(tried: str, free: str, own: str, allocated: str, pieces: str, others: str = "") -> str:
    return NEW.format(tried=tried, free=free, others=others, own=own, allocated=allocated, pieces=pieces)


def old(allocated: str, free: str, reserved: str) -> str:
    return OLD.format(tried="512.00 MiB", allocated=allocated, free=free, reserved=reserved)


HELD = "Process 4711 has 40.00 GiB memory in use. "


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (new("20.00 GiB", "2.00 GiB", "77.0 GiB", "76.0 GiB", "300.00 MiB"), "oom-capacity"),
        (new("2.00 GiB", "1.00 GiB", "78.0 GiB", "58.0 GiB", "19.50 GiB"), "oom-fragmentation"),
        (new("2.00 GiB", "1.00 GiB", "38.0 GiB", "37.0 GiB", "9.00 MiB", HELD), "gpu-memory-held-by-other-process"),
        (new("2.00 GiB", "1.00 GiB", "30.0 GiB", "29.0 GiB", "9.00 MiB"), "gpu-memory-held-by-other-process"),
        (old("9.80 GiB", "100.00 MiB", "10.10 GiB"), "oom-capacity"),
        (old("5.80 GiB", "300.00 MiB", "10.10 GiB"), "oom-fragmentation"),
        (old("1.00 GiB", "20.00 MiB", "1.10 GiB"), "gpu-memory-held-by-other-process"),
    ],
)
def test_the_numbers_decide(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_a_message_that_was_wrapped_is_read_as_one() -> None:
    words = new("2.00 GiB", "1.00 GiB", "78.0 GiB", "58.0 GiB", "19.50 GiB").split(" GPU 0 ")
    lines = [Line(1, words[0]), Line(2, f"GPU 0 {words[1]}")]
    assert judge_memory(lines, set())[0][0] == "oom-fragmentation"


def test_torch_2_1_misspelt_its_own_message_and_a_container_gives_this_process_another_number() -> None:
    text = (
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacty of 15.77 GiB of which 0.96 GiB is "
        "free. Process 12447 has 14.83 GiB memory in use. Of the allocated memory 14.01 GiB is allocated by PyTorch, "
        "and 480.00 MiB is reserved by PyTorch but unallocated."
    )
    assert kind_of(text) == "oom-capacity"


def test_the_numbers_are_read_in_bytes() -> None:
    numbers = read_numbers(OLD.format(tried="512.00 MiB", allocated="5.80 GiB", free="0 bytes", reserved="10.10 GiB"))
    assert numbers.tried == 512 * 2**20
    assert numbers.free == 0
    assert numbers.pieces == pytest.approx(4.3 * 2**30)


def test_memory_that_grows_with_every_step_is_a_leak() -> None:
    steps = [Line(n, f"Step {100 * n}, Mem Allocated: {2 + 0.9 * n:.2f} GB") for n in range(1, 9)]
    oom = Line(
        20,
        NEW.format(
            tried="2.00 GiB", free="1.00 GiB", others="", own="78.0 GiB", allocated="77.0 GiB", pieces="1.00 GiB"
        ),
    )
    found = {kind: weight for kind, weight, _, _ in judge_memory([*steps, oom], set())}
    assert max(found, key=lambda kind: found[kind]) == "tensors-retained-across-steps"


def test_memory_that_stays_is_none() -> None:
    steps = [Line(n, f"Step {100 * n}, Mem Allocated: {3.1 + 0.01 * (n % 2):.2f} GB") for n in range(1, 9)]
    assert judge_memory(steps, set()) == []


@pytest.mark.parametrize(
    "text", ["Tried to allocate", "tried to allocate . GiB", "Tried to allocate 1e999 GiB of 5 GiB free"]
)
def test_numbers_that_are_none_break_nothing(text: str) -> None:
    judge_memory([Line(1, text)], set())
