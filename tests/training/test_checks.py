"""The checks of ``torchdeck verify``: they pass where torch is right, and each one can fail."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import torchdeck
from torchdeck.environment.records import Check
from torchdeck.training.checks import program
from torchdeck.training.checks.outcome import Result, Skip, Wrong, first_error_line

SITE = Path(torchdeck.__file__).parent.parent
CHECKS = "torchdeck.training.checks"
VERSIONS = {"torch": "9.9.9", "cuda": None}


# --- without torch ---


class BackendError(RuntimeError):
    """What torch raises around the error of a backend."""

    def __init__(self, inner: BaseException) -> None:
        super().__init__(f"backend='inductor' raised:\n{inner}\n\nSet TORCH_LOGS for more")
        self.inner_exception = inner


def caused_by(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


_GCC = "C++ compile error\n\nOutput:\nIn file included from x.cpp:\nx.cpp:3:10: fatal error: omp.h: No such file\n note"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\ntwo"), "ValueError: one"),
        (ValueError("\n\n  two  \n"), "ValueError: two"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (Wrong("42, not 41"), "42, not 41"),
        (RuntimeError(_GCC), "RuntimeError: x.cpp:3:10: fatal error: omp.h: No such file"),
        (BackendError(ImportError("no module x")), "ImportError: no module x"),
        (BackendError(caused_by(RuntimeError("outer"), OSError("disk full"))), "OSError: disk full"),
        (caused_by(Wrong("g++: bad"), OSError("disk full")), "g++: bad"),
    ],
)
def test_an_error_is_told_by_the_line_that_says_most(error: BaseException, line: str) -> None:
    """The line is of the innermost cause, a compiler's ``error:`` before any other."""
    assert first_error_line(error) == line


def test_causes_in_a_circle_do_not_hang() -> None:
    """Two errors that name each other as cause still give a line."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert first_error_line(one) == "ValueError: two"


def test_a_detail_is_one_short_line() -> None:
    """Line breaks and long texts in a detail never reach the report, as JSON or as text."""
    result = Result("matmul", "cpu", "fail", "a\n b\t c " + "x" * 1000, 12.345)
    detail = result.fields()["detail"]
    assert isinstance(detail, str) and detail.startswith("a b c x") and len(detail) == 400 and detail.endswith("…")
    for json_lines in (True, False):
        out = io.StringIO()
        program.Report(out, json_lines=json_lines).end(result)
        assert out.getvalue().count("\n") == 1
    assert result.fields()["wall_ms"] == 12.3


def test_a_report_for_people_has_one_line_for_each_outcome() -> None:
    """Without ``--json-lines`` starts and versions are not shown, and failures are counted."""
    out = io.StringIO()
    report = program.Report(out, json_lines=False)
    report.start("matmul", "cpu")
    report.versions({"torch": "9.9.9"})
    report.end(Result("matmul", "cpu", "pass", "fine", 3.0))
    report.end(Result("conv", "cpu", "fail", "off by 2", 4.0))
    report.end(Result("nccl", "", "skip", "no GPU"))
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["pass", "fail", "skip"]
    assert "off by 2" in lines[1] and report.num_failed == 1


def test_each_line_is_out_before_the_next_thing_starts() -> None:
    """Every line is flushed, so that a crash leaves the last start behind."""
    flushed: list[str] = []

    class Out(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    report = program.Report(Out(), json_lines=True)
    report.start("conv", "cuda:0")
    assert json.loads(flushed[-1]) == {"start": "conv", "subject": "cuda:0"}


Cases = Sequence[tuple[str, Callable[[], str]]]


def raises(error: BaseException) -> Callable[..., Any]:
    def function(**_: object) -> Any:
        raise error

    return function


@pytest.fixture
def run_fakes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[dict[str, Any]], program.Report]]:
    """Run checks whose modules are made up, and return the JSON lines and the report."""

    def run(
        *, importing: Callable[[], str] = lambda: "torch 9.9.9", need_cuda: bool = False, **checks: Callable[..., Cases]
    ) -> tuple[list[dict[str, Any]], program.Report]:
        fake = types.ModuleType("fake")
        fake.__dict__.update({f"cases_{name}": function for name, function in checks.items()})
        fake.__dict__.update(cases_import=lambda: [("", importing)], versions=lambda: VERSIONS)
        monkeypatch.setitem(sys.modules, f"{CHECKS}.fake", fake)
        monkeypatch.setattr(program, "CHECKS", dict.fromkeys(["import", *checks], "fake"))
        out = io.StringIO()
        report = program.Report(out, json_lines=True)
        program.run_checks(list(checks), report, need_cuda=need_cuda)
        return [json.loads(line) for line in out.getvalue().splitlines()], report

    return run


RunFakes = Callable[..., tuple[list[dict[str, Any]], program.Report]]


def outcomes(lines: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {
        f"{line['name']} {line['subject']}".strip(): (line["outcome"], line["detail"])
        for line in lines
        if "outcome" in line
    }


def test_one_failure_never_stops_the_next_check(run_fakes: RunFakes) -> None:
    """An error, a SystemExit and a wrong figure in a check are failures with a line, and the next check runs."""
    lines, report = run_fakes(
        error=lambda: [("cpu", raises(ValueError("no good")))],
        leaves=lambda: [("cpu", raises(SystemExit(0)))],
        wrong=lambda: [("cpu", raises(Wrong("2, not 1"))), ("cuda:0", lambda: "right")],
        absent=lambda: [("cpu", raises(Skip("not here")))],
        fine=lambda: [("cpu", lambda: "5 is 5")],
    )
    assert outcomes(lines) == {
        "import": ("pass", "torch 9.9.9"),
        "error cpu": ("fail", "ValueError: no good"),
        "leaves cpu": ("fail", "SystemExit: 0"),
        "wrong cpu": ("fail", "2, not 1"),
        "wrong cuda:0": ("pass", "right"),
        "absent cpu": ("skip", "not here"),
        "fine cpu": ("pass", "5 is 5"),
    }
    assert report.num_failed == 3


def test_a_check_that_cannot_list_its_subjects_skips_or_fails(run_fakes: RunFakes) -> None:
    """A Skip while subjects are looked for is a skip; an error, or no subject and no reason, is a failure."""
    lines, report = run_fakes(
        absent=raises(Skip("no GPU")),
        broken=raises(ImportError("libx.so")),
        leaves=raises(SystemExit(0)),
        empty=lambda: [],
        fine=lambda: [("", lambda: "yes")],
    )
    found = outcomes(lines)
    assert [found[name][0] for name in ("absent", "broken", "leaves", "empty", "fine")] == [
        "skip",
        "fail",
        "fail",
        "fail",
        "pass",
    ]
    assert "nothing to check" in found["empty"][1]
    assert report.num_failed == 3


def test_a_missing_check_is_a_failure(run_fakes: RunFakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check whose module cannot be imported fails; it is not passed over."""
    _, report = run_fakes()
    monkeypatch.setitem(program.CHECKS, "gone", "no_such_module")
    program.run_checks(["gone"], report)
    assert report.num_failed == 1


def test_without_torch_the_others_are_skipped(run_fakes: RunFakes) -> None:
    """When the import fails, that is the one failure, no versions are told, and no other check is tried."""
    lines, report = run_fakes(importing=raises(OSError("libcudart.so.12")), fine=lambda: [("", lambda: "yes")])
    assert outcomes(lines) == {
        "import": ("fail", "OSError: libcudart.so.12"),
        "fine": ("skip", "torch cannot be imported"),
    }
    assert report.num_failed == 1
    assert not any("versions" in line for line in lines)


def test_versions_come_right_after_the_import(run_fakes: RunFakes) -> None:
    """One line tells the versions, after the outcome of ``import`` and before any other start."""
    lines, _ = run_fakes(fine=lambda: [("cpu", lambda: "yes")])
    kinds = [next(iter(line)) for line in lines]
    assert kinds == ["start", "name", "versions", "start", "start", "name"]
    assert lines[2] == {"versions": VERSIONS}


def test_an_interrupt_ends_the_run(run_fakes: RunFakes) -> None:
    """Ctrl-C is for the whole run, not for one check."""
    with pytest.raises(KeyboardInterrupt):
        run_fakes(slow=lambda: [("", raises(KeyboardInterrupt()))])


def test_the_need_for_a_gpu_reaches_the_devices(run_fakes: RunFakes) -> None:
    """``need_cuda`` is handed to the check ``devices`` and to no other."""
    asked: list[bool] = []

    def devices(*, need_cuda: bool) -> Cases:
        asked.append(need_cuda)
        return [("cpu", lambda: "")]

    run_fakes(need_cuda=True, devices=devices, other=lambda: [("cpu", lambda: "")])
    assert asked == [True]


@pytest.mark.parametrize("arguments", [["--only", "matmul"], ["--skip", "devices"]])
def test_a_needed_gpu_is_looked_for_whatever_is_skipped(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``--need-cuda`` runs ``devices`` even where the other options leave it out."""
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(program, "run_checks", lambda names, report, need_cuda: ran.append(names))
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(variable, "")  # main sets these; they must not outlive this test
    monkeypatch.setattr(program.faulthandler, "register", lambda *_, **__: None)
    program.main([*arguments, "--need-cuda"])
    assert "devices" in ran[0]


_FAKE_PROGRAM = f"""
import os, sys, time, types
from {CHECKS} import program
fake = types.ModuleType("fake")
def noisy():
    print("print of a library")
    os.write(1, b"write of a C library\\n")
    os.system("echo output of a child")
    return "ok"
fake.cases_import = lambda: [("", noisy)]
fake.versions = lambda: {{"torch": "9.9.9"}}
def hanging():
    print("it hangs", file=sys.stderr, flush=True)
    time.sleep(60)
fake.cases_slow = lambda: [("cpu", hanging)]
sys.modules["{CHECKS}.fake"] = fake
program.CHECKS = {{"import": "fake", "slow": "fake"}}
sys.exit(program.main(["--json-lines", *sys.argv[1:]]))
"""


def start_fake(*arguments: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", _FAKE_PROGRAM, *arguments]
    env = {**os.environ, "PYTHONPATH": str(SITE)}
    return subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_what_libraries_print_is_not_on_standard_output() -> None:
    """Prints of Python, of C and of child processes go to standard error; every line of the output is JSON."""
    process = start_fake("--skip", "slow")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert [json.loads(line) for line in stdout.splitlines()]
    assert all(words in stderr for words in ("print of a library", "write of a C library", "output of a child"))


def test_a_hang_leaves_its_start_and_its_stack() -> None:
    """A check that is ended from outside is the last start on standard output, and its stack is on standard error."""
    process = start_fake()
    assert process.stdout is not None and process.stderr is not None
    lines: list[dict[str, Any]] = []
    while not lines or lines[-1] != {"start": "slow", "subject": "cpu"}:
        lines.append(json.loads(process.stdout.readline()))
    while process.stderr.readline() != "it hangs\n":
        pass
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert stdout == ""
    assert "in hanging" in stderr and "_run_one" in stderr


# --- with the torch of a deck ---


def run_checks(
    deck_python: Path, *arguments: str, broken: str = "", **variables: str | None
) -> tuple[int, list[dict[str, Any]], str]:
    """Run the checks in a deck, on the CPU unless told otherwise.

    Args:
        deck_python: The deck's Python.
        arguments: Those of the checks.
        broken: Python code that runs before them, with ``torch`` imported.
        variables: Set in the environment; None unsets one.
    """
    given = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(SITE), **variables}
    env = {name: value for name, value in {**os.environ, **given}.items() if value is not None}
    start = ["-m", CHECKS]
    if broken:
        start = ["-c", f"{broken}\nimport sys\nfrom {CHECKS}.program import main\nsys.exit(main(sys.argv[1:]))"]
    argv = [deck_python, *start, "--json-lines", *arguments]
    done = subprocess.run(argv, check=False, env=env, text=True, capture_output=True, timeout=600)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture(scope="module")
def whole_run(deck_python: Path) -> tuple[int, list[dict[str, Any]], str]:
    """All checks, once, on the CPU."""
    return run_checks(deck_python)


WholeRun = tuple[int, list[dict[str, Any]], str]


@pytest.mark.deck
def test_every_check_passes_on_a_right_cpu(whole_run: WholeRun) -> None:
    """On a deck without a GPU nothing fails: what needs one is skipped with a reason, all else is computed."""
    code, lines, stderr = whole_run
    found = outcomes(lines)
    assert code == 0, found
    computed = {
        *("import", "devices cpu", "conv cpu float32", "gloo cpu", "compile cpu"),
        *(f"matmul cpu {dtype}" for dtype in ("float32", "float16", "bfloat16")),
    }
    assert {name for name in computed if found[name][0] != "pass"} == set(), stderr
    assert {name for name, (outcome, _) in found.items() if outcome == "skip"} >= {"devices cuda", "nccl", "cudagraph"}
    assert all(detail for _, detail in found.values())


@pytest.mark.deck
def test_every_line_is_one_that_the_proof_reads(whole_run: WholeRun) -> None:
    """Each JSON line is a start, the versions, or a Check; nothing ends that was not started."""
    _, lines, _ = whole_run
    started: list[tuple[str, str]] = []
    for line in lines:
        if "start" in line:
            started.append((line["start"], line["subject"]))
        elif "versions" not in line:
            check = msgspec.convert(line, Check, strict=True)
            assert started[-1] == (check.name, check.subject)
            assert set(line) == {"name", "subject", "outcome", "detail", "wall_ms"}


@pytest.mark.deck
def test_the_versions_are_those_that_are_installed(whole_run: WholeRun, deck_python: Path) -> None:
    """The line with the versions agrees with the packages of the deck, library by library."""
    lines = whole_run[1]
    versions = [line["versions"] for line in lines if "versions" in line]
    assert len(versions) == 1
    code = (
        "import importlib.metadata as m, json, platform; print(json.dumps({**{d.metadata['Name'].lower(): d.version "
        "for d in m.distributions()}, 'python': platform.python_version()}))"
    )
    done = subprocess.run([deck_python, "-c", code], text=True, capture_output=True, check=True)
    installed = json.loads(done.stdout)
    found = versions[0]
    assert list(found) == ["torch", "cuda", "cudnn", "nccl", "triton", "python"]
    assert found["torch"].split("+")[0] == installed["torch"].split("+")[0] == "2.6.0"
    assert (found["triton"], found["python"]) == (installed.get("triton"), installed["python"])
    for name, package in (("cudnn", "nvidia-cudnn-cu12"), ("nccl", "nvidia-nccl-cu12")):
        if package in installed:
            assert installed[package].startswith(found[name])
        else:
            assert found[name] is None
    assert (found["cuda"] is None) == ("nvidia-cuda-runtime-cu12" not in installed)


@pytest.mark.deck
def test_it_runs_from_its_folder_without_torchdeck(deck_python: Path, tmp_path: Path) -> None:
    """The folder alone, copied to where torchdeck is not installed, checks torch and prints lines for people."""
    folder = tmp_path / "checks"
    shutil.copytree(Path(program.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    argv = [deck_python, "-E", folder, "--only", "matmul"]
    done = subprocess.run(argv, check=False, text=True, capture_output=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[:2]] == [["pass", "import"], ["pass", "matmul"]]


_BREAK = {
    "a product that loses one term": (
        "matmul",
        "right = torch.matmul\ntorch.matmul = lambda a, b: right(a[:, 1:], b[1:])",
    ),
    "a product that is nothing but zeros": ("matmul", "torch.matmul = lambda a, b: (a[:, :1] * 0) * b[:1]"),
    "a product that is not a number": ("matmul", "torch.matmul = lambda a, b: (a[:, :1] * float('nan')) * b[:1]"),
    "a product of another shape": ("matmul", "right = torch.matmul\ntorch.matmul = lambda a, b: right(a, b)[:1]"),
    "every product, float64's too": (
        "matmul",
        "right = torch.Tensor.__matmul__\ntorch.Tensor.__matmul__ = lambda a, b: right(a, b) * 1.001\n"
        "torch.matmul = lambda a, b: right(a, b) * 1.001",
    ),
    "a convolution with one wrong element": (
        "conv",
        "right = torch.nn.functional.conv2d\n"
        "def conv2d(x, w, padding):\n    y = right(x, w, padding=padding).clone()\n    y[3, 31, 23, 23] += 1\n"
        "    return y\ntorch.nn.functional.conv2d = conv2d",
    ),
    "a convolution, float64's too": (
        "conv",
        "right = torch.nn.functional.conv2d\n"
        "torch.nn.functional.conv2d = lambda x, w, padding: right(x, w, padding=padding) * 1.01",
    ),
    "a gradient that does not flow": (
        "conv",
        "right = torch.autograd.grad\n"
        "torch.autograd.grad = lambda y, inputs, g: [d * (d.dtype == torch.float64) for d in right(y, inputs, g)]",
    ),
    "a device that forgets": ("devices", "torch.Tensor.add_ = lambda self, number: self"),
    "a sum over processes that garbles": (
        "gloo",
        "torch.distributed.all_reduce = lambda values: values.mul_(2)",
    ),
    "a gathering that does nothing": ("gloo", "torch.distributed.all_gather = lambda gathered, values: None"),
    "a torchvision that keeps every box": (
        "torchvision",
        "import torchvision\ntorchvision.ops.nms = lambda boxes, scores, most: scores.argsort(descending=True)",
    ),
    "a torchaudio that does not filter": (
        "torchaudio",
        "import torchaudio.functional\ntorchaudio.functional.lfilter = lambda x, a, b, clamp: x",
    ),
    "a compiler that computes something else": (
        "compile",
        "right = torch.compile\n"
        "torch.compile = lambda f, **options: right(lambda x, w, b: f(x, w, b) * 1.001, **options)",
    ),
    "a compiler that gives the function back": ("compile", "torch.compile = lambda f, **options: f"),
}


@pytest.mark.deck
@pytest.mark.parametrize("what", _BREAK)
def test_wrong_maths_is_found(what: str, deck_python: Path) -> None:
    """With one thing in torch broken, the check for it fails with a line that says what is wrong, and exit code 1."""
    name, breaking = _BREAK[what]
    code, lines, stderr = run_checks(deck_python, "--only", name, broken=f"import torch\n{breaking}")
    found = {subject: ended for subject, ended in outcomes(lines).items() if subject.startswith(name)}
    if all(detail == "not installed" for _, detail in found.values()):
        pytest.skip(f"this deck has no {name}")
    assert code == 1, stderr
    failed = [detail for outcome, detail in found.values() if outcome == "fail"]
    assert failed
    # Found by its figures, not by an error on the way.
    assert not [detail for detail in failed if "Error" in detail], failed


@pytest.mark.deck
def test_without_a_compiler_only_compile_fails(deck_python: Path, tmp_path: Path) -> None:
    """On a machine without g++ the failure names the compiler and where it was looked for; all else passes."""
    code, lines, _ = run_checks(deck_python, PATH=str(tmp_path), CXX=None, CC=None)
    assert code == 1
    failed = {name: detail for name, (outcome, detail) in outcomes(lines).items() if outcome == "fail"}
    assert list(failed) == ["compile cpu"]
    assert "no C++ compiler" in failed["compile cpu"] and "g++ not on PATH" in failed["compile cpu"]


@pytest.mark.deck
def test_a_missing_setuptools_is_named(deck_python: Path) -> None:
    """Inductor of torch 2.6 imports setuptools: without it compile fails and names it, and no compiler is blamed."""
    broken = "import sys\nimport torch\nfor name in [m for m in sys.modules if m.startswith('setuptools')]:\n"
    broken += "    del sys.modules[name]\nsys.modules['setuptools'] = None"
    code, lines, stderr = run_checks(deck_python, "--only", "compile", broken=broken)
    assert code == 1, stderr
    outcome, detail = outcomes(lines)["compile cpu"]
    assert outcome == "fail" and "setuptools" in detail and "needs a package" in detail and "g++" not in detail


@pytest.mark.deck
def test_a_compiler_that_is_switched_off_is_a_failure(deck_python: Path) -> None:
    """With TORCHDYNAMO_DISABLE=1 torch runs eagerly in silence; the check fails and names the switch."""
    code, lines, stderr = run_checks(deck_python, "--only", "compile", TORCHDYNAMO_DISABLE="1")
    assert code == 1, stderr
    outcome, detail = outcomes(lines)["compile cpu"]
    assert outcome == "fail" and "TORCHDYNAMO_DISABLE=1" in detail


@pytest.mark.deck
def test_hidden_gpus_are_said_to_be_hidden(deck_python: Path) -> None:
    """With CUDA_VISIBLE_DEVICES="" the devices are the CPU, and the reason for no GPU names the variable."""
    code, lines, stderr = run_checks(deck_python, "--only", "devices", CUDA_VISIBLE_DEVICES="")
    assert code == 0, stderr
    found = outcomes(lines)
    assert found["devices cpu"][0] == "pass"
    assert found["devices cuda"][0] == "skip"
    if "has no CUDA" not in found["devices cuda"][1]:
        assert 'CUDA_VISIBLE_DEVICES is set to ""' in found["devices cuda"][1]


@pytest.mark.deck
def test_a_needed_gpu_that_is_not_there_is_a_failure(deck_python: Path) -> None:
    """``--need-cuda`` without a GPU ends with exit code 1, even when only another check was asked for."""
    code, lines, stderr = run_checks(deck_python, "--only", "matmul", "--need-cuda")
    assert code == 1, stderr
    found = outcomes(lines)
    assert found["devices cuda"][0] == "fail" and "a CUDA device is needed" in found["devices cuda"][1]
    assert found["matmul cpu float32"][0] == "pass"


@pytest.mark.deck
@pytest.mark.gpu
def test_every_check_passes_on_a_right_gpu(deck_python: Path) -> None:
    """On a machine with a GPU every check computes on it too, NCCL, CUDA graphs and Triton included."""
    if shutil.which("nvidia-smi") is None:
        pytest.skip("needs an NVIDIA GPU")
    code, lines, stderr = run_checks(deck_python, "--need-cuda", CUDA_VISIBLE_DEVICES="0")
    found = outcomes(lines)
    assert code == 0, (found, stderr)
    wanted = ("devices cuda:0", "matmul cuda:0 bfloat16", "conv cuda:0 float16", "nccl cuda:0", "cudagraph cuda:0")
    assert {name for name in (*wanted, "compile cuda:0") if found[name][0] != "pass"} == set()
