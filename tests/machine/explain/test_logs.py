"""Reading logs: files, folders, compressed, cut, without an end."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest

from torchdeck.errors import UsageError
from torchdeck.machine.probes.logs import read_paths, read_stream


def texts(path: Path) -> list[str]:
    return [text for _, text, _ in read_paths([path])]


@pytest.mark.parametrize("opener", [open, gzip.open, bz2.open, lzma.open])
def test_a_compressed_file_is_read_like_a_plain_one(tmp_path: Path, opener: object) -> None:
    file = tmp_path / "log"
    with opener(file, "wb") as out:  # type: ignore[operator]
        out.write("one\r\ntwo é\n".encode())
    assert texts(file) == ["one", "two é"]


def test_a_folder_of_ranks_names_the_file_of_each_line(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "stderr.log").write_text(f"rank {rank}\n")
    assert [(number, text, file) for number, text, file in read_paths([tmp_path])] == [
        (1, "rank 0", "0/stderr.log"),
        (1, "rank 1", "1/stderr.log"),
    ]


def test_bytes_that_are_no_text_and_lines_without_end_are_read_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"\xff\xfe\x00" + b"x" * 200_000)
    found = texts(file)
    assert len(found) > 2
    assert all(len(text) <= 64_000 for text in found)


def test_a_damaged_archive_and_an_absent_file_are_named(tmp_path: Path) -> None:
    damaged = tmp_path / "log.gz"
    damaged.write_bytes(gzip.compress(b"text\n" * 1000)[:40])
    for path in (damaged, tmp_path / "absent", tmp_path / "nothing"):
        (tmp_path / "nothing").mkdir(exist_ok=True)
        with pytest.raises(UsageError):
            texts(path)


def test_standard_input_may_be_compressed_too() -> None:
    stream = io.BufferedReader(io.BytesIO(gzip.compress(b"one\ntwo\n")))  # type: ignore[arg-type]
    assert [text for _, text, _ in read_stream(stream)] == ["one", "two"]  # type: ignore[arg-type]
