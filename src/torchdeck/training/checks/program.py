"""The run: which checks, in which order, and how each outcome leaves the process.

Cheap checks come first and the compiler last, so that a time limit that ends a slow one costs the least.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

from .outcome import Result, Skip, Wrong, first_error_line

# name -> the module whose function ``check_<name>`` does it, in the order in which they run.
CHECKS: dict[str, str] = {
    "import": "versions",
    "devices": "versions",
    "matmul": "numeric",
    "conv": "numeric",
    "torchvision": "companions",
    "torchaudio": "companions",
    "gloo": "collectives",
    "nccl": "collectives",
    "cudagraph": "compiled",
    "compile": "compiled",
}
# What ``--deep`` adds: seconds of copying, and processes that talk to each other.
DEEP: dict[str, str] = {"dataloader": "deep", "copy": "deep", "ranks": "deep"}


def _known() -> dict[str, str]:
    """Return every check with its module."""
    return {**CHECKS, **DEEP}


# A check is a list of (subject, function), or raises Skip when it has no subject here.
Cases = Sequence[tuple[str, Callable[[], str]]]


class Report:
    """Writes starts and outcomes at once, so that whatever ends the process leaves the last start behind.

    Args:
        out: Where the lines go.
        json_lines: One JSON object a line; otherwise text for a person.
    """

    def __init__(self, out: TextIO, *, json_lines: bool) -> None:
        self.out = out
        self.json_lines = json_lines
        self.num_failed = 0

    def start(self, name: str, subject: str) -> None:
        """Say what is about to run."""
        if self.json_lines:
            self._write(json.dumps({"start": name, "subject": subject}))

    def versions(self, versions: Mapping[str, str | None]) -> None:
        """Say what is installed; a person reads it in the detail of ``import``."""
        if self.json_lines:
            self._write(json.dumps({"versions": dict(versions)}))

    def end(self, result: Result) -> None:
        """Say how it ended."""
        self.num_failed += result.outcome == "fail"
        fields = result.fields()
        if self.json_lines:
            self._write(json.dumps(fields))
        else:
            what = f"{result.name} {result.subject}".strip()
            self._write(f"{result.outcome:<5} {what:<24} {result.wall_ms:>9,.0f} ms  {fields['detail']}".rstrip())

    def _write(self, line: str) -> None:
        self.out.write(line + "\n")
        self.out.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks and return the exit code."""
    arguments = _parse(argv)
    with _own_output() as out, _fresh_caches():
        report = Report(out, json_lines=arguments.json_lines)
        # A hang that is ended from outside, or a crash, still leaves its Python stack on standard error.
        faulthandler.enable()
        faulthandler.register(signal.SIGTERM, chain=True)
        wanted = set(arguments.only or (_known() if arguments.deep else CHECKS)) - set(arguments.skip)
        # ``devices`` is where a missing GPU is a failure: what is needed must not be skipped.
        wanted |= {"devices"} if arguments.need_cuda else set()
        names = [name for name in _known() if name in wanted]
        run_checks(names, report, need_cuda=arguments.need_cuda)
    return 1 if report.num_failed else 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m torchdeck.training.checks", description="Prove that this Python's torch computes right."
    )
    parser.add_argument("--json-lines", action="store_true", help="one JSON object a line on standard output")
    parser.add_argument("--only", action="append", choices=_known(), metavar="NAME", help="run this check; repeatable")
    parser.add_argument(
        "--skip", action="append", default=[], choices=_known(), metavar="NAME", help="leave this one out; repeatable"
    )
    parser.add_argument(
        "--need-cuda", action="store_true", help="fail when no CUDA device can be used; runs devices always"
    )
    parser.add_argument("--deep", action="store_true", help="copies, shared memory and several processes too")
    return parser.parse_args(argv)


def run_checks(names: Sequence[str], report: Report, *, need_cuda: bool = False) -> None:
    """Run the named checks; one that fails, in whatever way, never stops the next.

    Args:
        names: Keys of ``CHECKS``. ``import`` always runs, since nothing can be said of the others without it.
        report: Where starts and outcomes go.
        need_cuda: Whether a machine without a usable CUDA device is a failure.
    """
    usable = _run_one("import", "", report, _cases("import", need_cuda)[0][1])
    if usable:
        report.versions(importlib.import_module(f"{__package__}.{CHECKS['import']}").versions())
    for name in names:
        if name == "import":
            continue
        if not usable:
            report.end(Result(name, "", "skip", "torch cannot be imported"))
            continue
        started = time.monotonic()
        # Finding the subjects already asks the driver, which can hang: say so before.
        report.start(name, "")
        try:
            cases = _cases(name, need_cuda)
            if not cases:
                raise Wrong("found nothing to check, and did not say why")
        except Skip as reason:
            report.end(Result(name, "", "skip", str(reason)))
        except BaseException as error:
            _stop_on_interrupt(error)
            report.end(Result(name, "", "fail", first_error_line(error), _since_ms(started)))
        else:
            for subject, function in cases:
                _run_one(name, subject, report, function)


def _cases(name: str, need_cuda: bool) -> Cases:
    module = importlib.import_module(f"{__package__}.{_known()[name]}")
    function = getattr(module, f"cases_{name}")
    cases: Cases = function(need_cuda=need_cuda) if name == "devices" else function()
    return cases


def _run_one(name: str, subject: str, report: Report, function: Callable[[], str]) -> bool:
    report.start(name, subject)
    started = time.monotonic()
    try:
        detail = function()
    except Skip as reason:
        report.end(Result(name, subject, "skip", str(reason), _since_ms(started)))
    # SystemExit too: a broken extension may leave by it, and that must not end the run.
    except BaseException as error:
        _stop_on_interrupt(error)
        report.end(Result(name, subject, "fail", first_error_line(error), _since_ms(started)))
        return False
    else:
        report.end(Result(name, subject, "pass", detail, _since_ms(started)))
    return True


def _stop_on_interrupt(error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt):
        raise error


def _since_ms(started: float) -> float:
    return (time.monotonic() - started) * 1000


@contextlib.contextmanager
def _own_output() -> Iterator[TextIO]:
    """Keep standard output for the report: what libraries print (NCCL prints its version) goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(kept, "w", encoding="utf-8", errors="replace") as out:
        try:
            yield out
        finally:
            out.flush()
            sys.stdout.flush()
            os.dup2(kept, 1)


@contextlib.contextmanager
def _fresh_caches() -> Iterator[None]:
    """Give Inductor and Triton empty caches, set before torch reads them, so that ``compile`` truly compiles."""
    folder = tempfile.mkdtemp(prefix="torchdeck-verify-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")  # noqa: PTH118 - no Path needed
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")  # noqa: PTH118
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
