"""The frozen types of this wing's reports: findings, and the answer of the stack resolver."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "unknown", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "unknown", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, will go wrong, or could not be judged.

    Args:
        rule: Permanent kebab-case id of the cause in the catalogue.
        severity: ``error``, ``warning``, ``unknown`` (a fact is missing) or ``info``.
        title: What is the matter, in one line, with the values at hand.
        cause: Why that is so.
        evidence: The facts it rests on, each with where it was read.
        needs: What would be right instead.
        mend: Exact commands, best first.
        where: The place in a file that it is about, such as ``Dockerfile:12``; empty for a machine.
    """

    rule: str
    severity: Severity
    title: str
    cause: str = ""
    evidence: tuple[str, ...] = ()
    needs: str = ""
    mend: tuple[str, ...] = ()
    where: str = ""


class FindingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints for findings, best first."""

    schema: str = "torchdeck.findings/1"
    findings: tuple[Finding, ...] = ()


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A build of torch with everything that belongs to it.

    Args:
        torch: Its release, such as ``2.6.0``.
        variant: ``cu124``, ``cpu``.
        cuda: The CUDA release, such as ``12.4``; None for the CPU.
        index: Where it is had: ``pypi``, or ``pytorch/NAME`` for PyTorch's own index.
        arch: The processor architecture.
        cudnn: Version of the pinned library; None where there is none, or it is not known. So ``nccl``, ``triton``.
        torchvision: The version that goes with it; None where there is none for this Python. So ``torchaudio``.
        driver_floor: The oldest driver under which it runs; None for the CPU.
        driver_recommended: The driver from which on everything works; None for the CPU.
        pythons: First and last Python that it has wheels for.
        method: How this is known: ``verified``, ``read`` or ``inferred``.
        reasons: Why this one, in sentences.
    """

    torch: str
    variant: str
    cuda: str | None
    index: str
    arch: str
    cudnn: str | None
    nccl: str | None
    triton: str | None
    torchvision: str | None
    torchaudio: str | None
    driver_floor: str | None
    driver_recommended: str | None
    pythons: tuple[str, str]
    method: str
    reasons: tuple[str, ...] = ()


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A build that was not taken: ``code`` for programs, ``reason`` for people."""

    torch: str
    variant: str
    index: str
    arch: str
    code: str
    reason: str


class StackReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``torchdeck stacks --json`` prints.

    Args:
        request: What was asked for, and for which machine, as text.
        chosen: The build that fits; None if none does.
        installed: The build that would really be installed: another than ``chosen`` where PyPI's CUDA build stands in
            for a CPU build that cannot be reached.
        wanted: A build that would fit better, or at all, but whose index cannot be reached.
        rejected: Every other build, with the reason.
        unreachable: The indexes that were tried and do not answer.
    """

    schema: str = "torchdeck.stacks/1"
    request: dict[str, str | None] = {}
    chosen: Build | None = None
    installed: Build | None = None
    wanted: Build | None = None
    rejected: tuple[Rejection, ...] = ()
    unreachable: tuple[str, ...] = ()
