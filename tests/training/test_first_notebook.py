"""The first notebook: a valid file without outputs, that runs to its end with the deck's own Jupyter and learns."""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

import torchdeck
from torchdeck.training.examples import NOTEBOOK

SITE = Path(torchdeck.__file__).parent.parent

# Runs in the deck: nbclient is what JupyterLab's own nbconvert executes with. A finished notebook holds only the last
# state of a display, so the updates are taken down as they arrive, with the cell that was running.
_EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient

updates = []

class Client(NotebookClient):
    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "update_display_data":
            updates.append([cell.id, msg["content"]["data"].get("text/html", "")])
        return super().process_message(msg, cell, cell_index)

notebook = nbformat.read(sys.argv[1], as_version=4)
Client(notebook, timeout=600, kernel_name=notebook.metadata.kernelspec.name).execute()
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump({"notebook": notebook, "updates": updates}, file)
"""


def in_deck(deck_python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the deck's Python with Jupyter and compile folders of its own."""
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR")
    env = {**os.environ, **{name: str(folder / name.lower()) for name in own}, "PYTHONPATH": str(SITE)}
    argv = [deck_python, *arguments]
    return subprocess.run(argv, check=False, cwd=folder, env=env, text=True, capture_output=True, timeout=800)


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return document


def test_it_is_stored_without_outputs(written: dict[str, Any]) -> None:
    """No cell of the shipped notebook has an output or a number, and the kernel is the deck's ``python3``."""
    code = [cell for cell in written["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert written["metadata"]["kernelspec"]["name"] == "python3"
    assert (written["nbformat"], written["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in written["cells"]]
    assert len(set(ids)) == len(ids)


def test_it_needs_only_what_every_deck_has(written: dict[str, Any]) -> None:
    """The cells import torch, torchdeck, IPython and the standard library, and each code cell is explained before."""
    cells = written["cells"]
    imported: set[str] = set()
    for before, cell in zip([None, *cells], cells, strict=False):
        if cell["cell_type"] != "code":
            continue
        assert before is not None and before["cell_type"] == "markdown", f"nothing explains the cell {cell['id']}"
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert imported == {"torch", "torchdeck", "IPython", "time"}


def test_it_says_where_to_go_next(written: dict[str, Any]) -> None:
    """The last cell names installing in a cell, ``torchdeck verify`` and ``torchdeck exec``; no cell has an address."""
    last = source(written["cells"][-1])
    assert all(words in last for words in ("%pip install", "torchdeck verify", "torchdeck exec"))
    assert not any(re.search(r"https?://", source(cell)) for cell in written["cells"])


@pytest.mark.deck
def test_jupyter_finds_it_valid(deck_python: Path, tmp_path: Path) -> None:
    """The deck's nbformat validates it as it is, with nothing to repair and no warning."""
    code = (
        "import json, pathlib, sys, warnings, nbformat; warnings.simplefilter('error');"
        "nbformat.validate(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8')))"
    )
    done = in_deck(deck_python, tmp_path, "-c", code, str(NOTEBOOK))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def executed(deck_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The notebook after one run in the deck, the updates of its displays, and the processor time in seconds."""
    folder = tmp_path_factory.mktemp("notebook")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = in_deck(deck_python, folder, "-c", _EXECUTE, str(NOTEBOOK), str(folder / "done.json"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr[-4000:]
    document: dict[str, Any] = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    document["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return document


def printed(executed: dict[str, Any], cell_id: str) -> str:
    outputs = next(cell for cell in executed["notebook"]["cells"] if cell["id"] == cell_id)["outputs"]
    return "".join("".join(output.get("text", "")) for output in outputs if output.get("name") == "stdout")


def shown(executed: dict[str, Any], cell_id: str) -> str:
    outputs = next(cell for cell in executed["notebook"]["cells"] if cell["id"] == cell_id)["outputs"]
    return "".join("".join(output["data"].get("text/html", "")) for output in outputs if "data" in output)


@pytest.mark.deck
def test_every_cell_runs_without_error(executed: dict[str, Any]) -> None:
    """Run from top to bottom, every code cell is executed and none ends with an error."""
    code = [cell for cell in executed["notebook"]["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]


@pytest.mark.deck
def test_it_prints_the_torch_of_the_deck(executed: dict[str, Any]) -> None:
    """The first cell prints torch 2.6.0, and whether there is CUDA."""
    assert re.search(r"torch version: +2\.6\.0\b", printed(executed, "machine"))
    assert re.search(r"CUDA available: (True|False)", printed(executed, "machine"))


@pytest.mark.deck
def test_digits_are_shown_as_pictures(executed: dict[str, Any]) -> None:
    """Twenty digits of 64 pixels each are drawn before the training, and the mistakes after it."""
    picture = shown(executed, "picture")
    assert picture.startswith("<svg") and picture.count("<rect") == 20 * 64
    num_wrong = int(printed(executed, "mistakes").split()[1])
    assert shown(executed, "mistakes").count("<rect") == min(10, num_wrong) * 64


@pytest.mark.deck
def test_the_loss_curve_grows_during_the_training(executed: dict[str, Any]) -> None:
    """While the training cell runs, the chart is updated after each of 15 epochs, each time with more of the curve."""
    assert [cell_id for cell_id, _ in executed["updates"]] == ["train"] * 15
    charts = [html for _, html in executed["updates"]]
    lengths = [int(re.findall(r"([\d,]+) values along step", chart)[0].replace(",", "")) for chart in charts]
    assert lengths == sorted(set(lengths)) and lengths[0] == 23 and lengths[-1] == 15 * 23
    first, last = map(float, re.findall(r"from ([\d.e-]+) to ([\d.e-]+\d)", charts[-1])[0])
    assert last < first / 4
    assert shown(executed, "train") == charts[-1]


@pytest.mark.deck
def test_it_reads_digits_that_it_has_not_seen(executed: dict[str, Any]) -> None:
    """More than 95 % of the digits that were kept aside are read right, and the count of mistakes agrees."""
    accuracy = float(printed(executed, "test").split(":")[1])
    assert accuracy > 0.95
    num_wrong, num_held_out = map(int, re.findall(r"\d+", printed(executed, "mistakes")))
    assert accuracy == pytest.approx(1 - num_wrong / num_held_out, abs=5e-4)


@pytest.mark.deck
def test_compiling_is_measured_and_changes_nothing(executed: dict[str, Any]) -> None:
    """Both times of ``torch.compile`` are printed, and its scores are those of the plain network."""
    figures = re.findall(r": +([\d.e+-]+)", printed(executed, "compile"))
    once_s, plain_ms, compiled_ms, difference = map(float, figures)
    assert once_s > 0 and plain_ms > 0 and compiled_ms > 0
    # On a GPU both convolve in TF32, perhaps with different kernels; scores are in the tens.
    assert difference < (1e-3 if "cpu" in printed(executed, "machine") else 0.1)


@pytest.mark.deck
def test_it_takes_less_than_a_minute_of_two_cores(executed: dict[str, Any]) -> None:
    """The processor time of the whole run, Jupyter and compilers included, is below 60 s on each of two cores."""
    assert executed["cpu_s"] < 120
