"""Memory snapshots: judged by their numbers, and never able to act. Made by hand in torch's structure."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from torchdeck.errors import UsageError
from torchdeck.machine.explain.snapshot import explain_snapshot
from torchdeck.machine.probes.memory_snapshot import is_snapshot, read_snapshot

MIB = 2**20


def block(size: int, state: str = "active_allocated", line: int = 0) -> dict[str, Any]:
    frames = [
        {"filename": "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", "line": 125, "name": "forward"},
        {"filename": "/home/ada/train.py", "line": line, "name": "step"},
    ]
    return {"size": size, "state": state, "frames": frames if line else []}


def written(tmp_path: Path, blocks: list[dict[str, Any]]) -> Path:
    segment = {"device": 0, "address": 1, "total_size": sum(one["size"] for one in blocks), "blocks": blocks}
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps({"segments": [segment], "device_traces": []}))
    return file


def test_free_memory_in_small_pieces_is_fragmentation(tmp_path: Path) -> None:
    blocks = [part for _ in range(20) for part in (block(60 * MIB, line=41), block(40 * MIB, "inactive"))]
    file = written(tmp_path, blocks)
    assert is_snapshot(file)
    (finding,) = explain_snapshot(read_snapshot(file)).findings
    assert finding.rule == "oom-fragmentation"
    assert "train.py:41 step" in finding.evidence[1].text


def test_memory_that_tensors_hold_is_capacity_with_the_lines_that_hold_it(tmp_path: Path) -> None:
    blocks = [block(900 * MIB, line=7), block(80 * MIB, line=9), block(20 * MIB, "inactive")]
    (finding,) = explain_snapshot(read_snapshot(written(tmp_path, blocks))).findings
    assert finding.rule == "oom-capacity"
    assert [line.text.split(" at ")[1] for line in finding.evidence[1:]] == [
        "/home/ada/train.py:7 step", "/home/ada/train.py:9 step"
    ]  # fmt: skip


class Evil:
    """Would make a folder when it is loaded."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.folder,)


def test_a_pickle_that_would_act_is_refused_and_does_not(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps({"segments": [Evil(str(tmp_path / "owned"))]}))
    with pytest.raises(UsageError, match="no memory snapshot"):
        read_snapshot(file)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x80\x05.", pickle.dumps([1]), pickle.dumps({"segments": [{}]})])
def test_what_is_no_snapshot_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(content)
    with pytest.raises(UsageError):
        read_snapshot(file)
