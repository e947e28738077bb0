"""What the code of the two seed documents sets out to do works, and what cannot work as printed fails as recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchdeck.toml import loads

pytestmark = pytest.mark.deck

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
ERRORS: list[dict[str, Any]] = loads((HERE / "literal_errors.toml").read_text(encoding="utf-8"))["error"]
TABLE = HERE.parents[1] / "docs" / "seeds.md"
SKIPPED = 77
TIME_LIMIT_S = 240
# Left over from a launcher or a user's settings, these would change what a program does.
_FOREIGN = re.compile(r"RANK|LOCAL_RANK|WORLD_SIZE|MASTER_\w+|TORCH_COMPILE_\w+|TORCHDYNAMO_\w+|TORCHINDUCTOR_\w+")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of every program: without a launcher's variables, with a compile cache of this run."""
    kept = {name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}
    cache = str(tmp_path_factory.mktemp("inductor"))
    # One compile thread: a pool of workers takes longer to start than these small graphs to compile.
    return {**kept, "TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONUTF8": "1"}


@pytest.fixture(scope="module")
def cuda(deck_python: Path, environment: dict[str, str]) -> tuple[bool, bool]:
    """Whether the deck's torch is built for CUDA, and whether it can use a GPU."""
    code = "import torch; print(bool(torch.version.cuda), torch.cuda.is_available())"
    built, usable = _run(["-c", code], deck_python, environment).stdout.split()
    return built == "True", usable == "True"


def _run(arguments: list[str], python: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program; at the time limit it ends with all the processes that it started."""
    process = subprocess.Popen(
        [str(python), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=TIME_LIMIT_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_block_does_what_it_promises(program: Path, deck_python: Path, environment: dict[str, str]) -> None:
    """Our program for a block asserts what the block promises, and ends well or says why it cannot run here."""
    done = _run([str(program)], deck_python, environment)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "a program says what it found"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: Path(error["program"]).stem)
def test_printed_line_fails_as_recorded(
    error: dict[str, Any], deck_python: Path, environment: dict[str, str], cuda: tuple[bool, bool]
) -> None:
    """What cannot work as printed ends with exactly the recorded exception and text."""
    built, usable = cuda
    if error.get("needs_no_gpu") and usable:
        pytest.skip("the error of a machine without a GPU, and here is one")
    if error.get("needs_no_gpu") and not built:
        pytest.skip("recorded with a CUDA build of torch; a build without CUDA words it otherwise")
    done = _run([str(HERE / "literal" / error["program"])], deck_python, environment)
    assert done.returncode != 0, done.stdout
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in done.stderr.splitlines()]
    wanted = f"{error['exception']}: {error['message']}" if error["message"] else error["exception"]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Iteration)\b", line)]
    assert raised, done.stderr
    assert raised[-1].startswith(wanted), done.stderr


def test_every_error_is_whole() -> None:
    """Each recorded error has a document, a cause in kebab case and what works instead; no reproducer is left over."""
    for error in ERRORS:
        assert error["document"] in {"D1", "D2"}, error
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", error["kind"]), error
        assert error["literal"], error
        assert error["instead"], error
    assert sorted(error["program"] for error in ERRORS) == sorted(path.name for path in (HERE / "literal").glob("*.py"))


def test_table_covers_every_program() -> None:
    """The table of blocks in docs/seeds.md names every program and every reproduced error, and no other."""
    rows = "\n".join(line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|"))
    named = set(re.findall(r"`((?:programs|literal)/\w+\.py)`", rows))
    there = {f"{path.parent.name}/{path.name}" for path in [*PROGRAMS, *(HERE / "literal").glob("*.py")]}
    assert named == there
