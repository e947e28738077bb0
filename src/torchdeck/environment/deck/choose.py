"""Choosing a deck's stack and Python together: facts of this machine, the request, and what can be reached.

The deciding itself is pure and stands in ``machine.stack``; here its inputs are fetched, and a Python that the stack
does not support is replaced by one that it does.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass

import msgspec

from torchdeck.environment.deck.pythons import Python, current_python, find_any, find_python, obtain_python
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.spec import DeckSpec
from torchdeck.environment.deck.state import DeckState
from torchdeck.environment.uv import reachable
from torchdeck.errors import FindingsError, NetworkError, UsageError
from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.judge import judge_for_build
from torchdeck.machine.probes import gather
from torchdeck.machine.probes.python import gather_python
from torchdeck.machine.records import Build, Finding, StackReport
from torchdeck.machine.stack import (
    StackRequest,
    find_build,
    listed_releases,
    request_from,
    resolve_reachable,
    resolve_stack,
)
from torchdeck.machine.stack.failure import no_stack
from torchdeck.machine.stack.parse import version_tuple

# The Pythons that may carry a deck, the most used first; torchdeck itself needs 3.10.
_PYTHONS = ("3.12", "3.13", "3.11", "3.10", "3.14", "3.15")
_PYPI = "pypi"


@dataclass(frozen=True)
class Choice:
    """A stack and a Python.

    Args:
        installed: The build that is really installed.
        python: The interpreter beneath the deck.
        reasons: Why this stack, in sentences.
        gpu: The GPU that its compiled code is for, such as ``sm_90``; empty for the CPU.
        findings: What a person should know before it is installed.
        listed: The releases that the catalogue knows, oldest first.
    """

    installed: Build
    python: Python
    reasons: tuple[str, ...] = ()
    gpu: str = ""
    findings: tuple[Finding, ...] = ()
    listed: tuple[str, ...] = ()

    @property
    def companions(self) -> dict[str, str]:
        """Name and version of torch and the packages that belong to it."""
        versions = {
            "torch": self.installed.torch,
            "torchvision": self.installed.torchvision,
            "torchaudio": self.installed.torchaudio,
        }
        return {name: version for name, version in versions.items() if version is not None}

    @property
    def pins(self) -> list[str]:
        """The stack as requirement lines."""
        return [f"{name}=={version}" for name, version in self.companions.items()]

    @property
    def backend(self) -> str:
        """PyTorch's own index to take the build from, empty for the ordinary one."""
        return "" if self.installed.index == _PYPI else self.installed.index.removeprefix("pytorch/")


def choose(spec: DeckSpec, reporter: Reporter) -> Choice:
    """Choose stack and Python for this machine.

    A Python that was asked for is kept, and the stack chosen to fit it. One that merely runs torchdeck gives way to
    another where the stack needs that: one on this machine, else one that uv brings, else the stack that fits it.

    Raises:
        FindingsError: No build fits this machine.
        OutsideError: The one that fits, or the Python it needs, cannot be had from here.
        UsageError: The stack or the Python is not one.
    """
    facts = gather()
    _check_wish(facts, spec)
    python = obtain_python(spec.python, reporter) if spec.python else current_python()
    report = _resolve(facts, python, spec)
    reasons: tuple[str, ...] = ()
    if not spec.python:
        python, report, reasons = _with_fitting_python(facts, python, report, spec, reporter)
    if report.chosen is None or report.installed is None:
        raise no_stack(report)
    installed = report.installed
    reasons = (*report.chosen.reasons, *reasons)
    if installed is not report.chosen and installed.reasons != report.chosen.reasons:
        reasons = (*reasons, *installed.reasons)
    facts = msgspec.structs.replace(facts, python=gather_python(python.path))
    return Choice(
        installed=installed,
        python=python,
        reasons=reasons,
        gpu=_gpu(facts, installed),
        findings=tuple(judge_for_build(facts, installed.torch, installed.variant, installed.index)),
        listed=listed_releases(),
    )


def _check_wish(facts: Facts, spec: DeckSpec) -> None:
    """Refuse a stack and a Python that exclude each other, before that Python is fetched for nothing."""
    if spec.stack and re.fullmatch(r"3\.\d{1,2}(\.\d{1,2})?", spec.python):
        minor = ".".join(spec.python.split(".")[:2])
        request: StackRequest = msgspec.structs.replace(request_from(facts, spec.stack), python=minor)
        report = resolve_stack(request)
        if report.chosen is None:
            raise no_stack(report)


def _resolve(facts: Facts, python: Python | None, spec: DeckSpec) -> StackReport:
    """Resolve for a Python; for any Python when None."""
    minor: str | Missing = Missing(reason="any") if python is None else ".".join(map(str, python.minor))
    request: StackRequest = msgspec.structs.replace(request_from(facts, spec.stack), python=minor)
    return resolve_reachable(request, reachable)


def _with_fitting_python(
    facts: Facts, current: Python, report: StackReport, spec: DeckSpec, reporter: Reporter
) -> tuple[Python, StackReport, tuple[str, ...]]:
    """Return another Python where the current one alone keeps the machine from the stack that is wanted."""
    best = _resolve(facts, None, spec)
    if best.chosen is None or (report.chosen is not None and report.chosen.torch == best.chosen.torch):
        return current, report, ()
    first, last = (version_tuple(text) for text in best.chosen.pythons)
    fitting = [python for python in _PYTHONS if first <= version_tuple(python) <= last]
    wheels = f"torch {best.chosen.torch} has wheels for Python {best.chosen.pythons[0]} to {best.chosen.pythons[1]}"
    found = find_any(fitting)
    if found is None:
        try:
            found = obtain_python(fitting[0], reporter)
        except NetworkError as error:
            if report.chosen is not None:
                reporter.note(f"{wheels}; there is none here, and none could be fetched")
                return current, report, ()
            raise NetworkError(
                f"{wheels}, and there is none here",
                rule="python-unsupported",
                found=f"Python {current.version}; fetching another failed: {error.found}",
                needs=f"one of: {', '.join(fitting)}",
                mend=(f"apt-get install python{fitting[0]} python{fitting[0]}-venv", *_newer_stack(facts, current)),
            ) from None
    why = f"Python {found.version} instead of {current.version}: {wheels}"
    return found, _resolve(facts, found, spec), (why,)


def _newer_stack(facts: Facts, python: Python) -> tuple[str, ...]:
    """Return the command for a stack that the Python at hand supports."""
    request = msgspec.structs.replace(request_from(facts), python=".".join(map(str, python.minor)))
    chosen = resolve_reachable(request, reachable).chosen
    return () if chosen is None else (f"torchdeck up --stack {chosen.torch}",)


def _gpu(facts: Facts, build: Build) -> str:
    """Return the GPU that compiled code will be for; empty for the CPU, or where it is not known."""
    if build.variant == "cpu" or isinstance(facts.nvidia, Missing) or isinstance(facts.nvidia.gpus, Missing):
        return ""
    ccs = [gpu.cc for gpu in facts.nvidia.gpus if not isinstance(gpu.cc, Missing)]
    return "-".join(f"sm_{major}{minor}" for major, minor in dict.fromkeys(ccs))


def choose_again(state: DeckState, reporter: Reporter) -> Choice:
    """Return what a deck was made with, for mending it; nothing is chosen anew.

    Raises:
        FindingsError: The catalogue no longer lists its build.
        OutsideError: Its Python is gone, and cannot be had again.
    """
    minor = ".".join(state.python.split(".")[:2])
    build = find_build(state.torch, state.variant, state.index, platform.machine(), minor)
    if build is None:
        raise FindingsError(
            f"the deck {state.name} has a build of torch that this torchdeck does not know",
            found=f"torch {state.torch}+{state.variant} from {state.index}, for {platform.machine()}",
            mend="torchdeck up --relock",
        )
    try:
        python = find_python(state.python) or find_python(minor)
    except UsageError:
        python = None
    return Choice(installed=build, python=python or obtain_python(minor, reporter), gpu=state.gpu)
