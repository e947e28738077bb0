"""The digits that ship with the package: the real ones, whole, and refused when damaged."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import torchdeck
from torchdeck.training import examples

SITE = Path(torchdeck.__file__).parent.parent
PACKED = Path(examples.__file__).with_name("digits.bin.gz")
NUM_PIXELS = 1797 * 64


@pytest.fixture
def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "make_digits.py"
    spec = importlib.util.spec_from_file_location("make_digits", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_deck(deck_python: Path, code: str, path: Path = SITE) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(path)}
    argv = [deck_python, "-c", code]
    return subprocess.run(argv, check=False, env=env, text=True, capture_output=True, timeout=120)


def test_the_file_holds_the_bytes_that_the_tool_makes(tool: ModuleType) -> None:
    """The shipped bytes have the hash that the tool expects and that DATA.md tells its readers."""
    digest = hashlib.sha256(gzip.decompress(PACKED.read_bytes())).hexdigest()
    assert digest == tool.SHA256
    assert digest in PACKED.with_name("DATA.md").read_text(encoding="utf-8")
    assert tool.TARGET.read_bytes() == PACKED.read_bytes()


def test_every_pixel_and_label_is_in_range() -> None:
    """There are 1,797 images with ink from 0 to 16 and as many of each digit as the UCI test set has."""
    raw = gzip.decompress(PACKED.read_bytes())
    ink, labels = raw[:NUM_PIXELS], raw[NUM_PIXELS:]
    assert (min(ink), max(ink), len(labels)) == (0, 16, 1797)
    counts = Counter(labels)
    assert [counts[digit] for digit in range(10)] == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert len({ink[i : i + 64] for i in range(0, NUM_PIXELS, 64)}) == 1797, "two images are the same"


def test_the_tool_accepts_the_right_data_and_refuses_other(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` is 0 for the shipped file, and 1 when the source or the file in the tree holds other bytes."""
    raw = gzip.decompress(PACKED.read_bytes())
    monkeypatch.setattr("sys.argv", ["make_digits.py", "--check"])
    monkeypatch.setattr(tool, "make", lambda: raw)
    assert tool.main() == 0
    monkeypatch.setattr(tool, "TARGET", tmp_path / "digits.bin.gz")
    tool.TARGET.write_bytes(gzip.compress(raw[:-1] + b"\x00"))
    assert tool.main() == 1
    assert "holds other bytes" in capsys.readouterr().err
    monkeypatch.setattr(tool, "make", lambda: raw[:-1] + b"\x00")
    assert tool.main() == 1
    assert "expected" in capsys.readouterr().err


def test_the_tool_writes_what_it_would_accept(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without ``--check`` the file is written anew, with the same content."""
    raw = gzip.decompress(PACKED.read_bytes())
    monkeypatch.setattr("sys.argv", ["make_digits.py"])
    monkeypatch.setattr(tool, "make", lambda: raw)
    monkeypatch.setattr(tool, "TARGET", tmp_path / "digits.bin.gz")
    assert tool.main() == 0
    assert gzip.decompress(tool.TARGET.read_bytes()) == raw


@pytest.mark.deck
def test_digits_load_as_tensors(deck_python: Path) -> None:
    """``load_digits`` gives uint8 images [1797, 8, 8] and int64 labels [1797] with the bytes of the file."""
    done = in_deck(
        deck_python,
        "import hashlib, json; from torchdeck.training.examples import load_digits; x, y = load_digits();"
        "digest = hashlib.sha256(bytes(x.flatten().tolist()) + bytes(y.tolist())).hexdigest();"
        "print(json.dumps([list(x.shape), str(x.dtype), list(y.shape), str(y.dtype), digest]))",
    )
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256(gzip.decompress(PACKED.read_bytes())).hexdigest()
    assert json.loads(done.stdout) == [[1797, 8, 8], "torch.uint8", [1797], "torch.int64", digest]
    assert "Warning" not in done.stderr.replace("Failed to initialize NumPy", ""), done.stderr


@pytest.mark.deck
def test_a_damaged_file_is_refused_in_words(deck_python: Path, tmp_path: Path) -> None:
    """A file that is cut off, altered, of another length or no gzip at all is a ValueError that says what to do."""
    packed = PACKED.read_bytes()
    altered = bytearray(packed)
    altered[len(altered) // 2] ^= 0xFF
    damages = {
        "cut": packed[: len(packed) // 2],
        "altered": bytes(altered),
        "short": gzip.compress(gzip.decompress(packed)[:-1]),
        "text": b"not found",
        "empty": b"",
    }
    for name, content in damages.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_bytes(Path(examples.__file__).read_bytes())
        (tmp_path / name / "digits.bin.gz").write_bytes(content)
    done = in_deck(
        deck_python,
        f"""
import importlib
for name in {list(damages)}:
    try:
        importlib.import_module(name).load_digits()
    except ValueError as error:
        print(error)
""",
        path=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(damages)
    assert all("digits.bin.gz" in line and "install torchdeck again" in line for line in lines), lines
