"""All rules, and the order in which their findings are shown."""

from __future__ import annotations

from torchdeck.machine.catalogue import BuildRow, builds
from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.judge.compiling import judge_compilers, judge_headers, judge_python
from torchdeck.machine.judge.gpu import judge_arch, judge_driver, judge_nvidia
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.storage import judge_storage
from torchdeck.machine.records import SEVERITIES, Finding


def judge(facts: Facts, policy: Policy | None = None) -> list[Finding]:
    """Judge a machine: what is wrong, or will go wrong, with what is installed on it or about to be.

    Returns:
        The findings, the gravest first; a rule that lacks its facts contributes one that says so.
    """
    policy = policy or Policy()
    findings = [
        *judge_nvidia(facts),
        *_installed_torch(facts),
        *judge_python(facts),
        *judge_compilers(facts),
        *judge_headers(facts),
        *judge_storage(facts, policy),
    ]
    return in_order(findings)


def judge_for_build(facts: Facts, torch: str, variant: str, index: str) -> list[Finding]:
    """Judge a machine for a deck with this build, whose Python and space are looked at elsewhere."""
    row = _row(torch, variant, index, _arch(facts))
    fits = [*judge_driver(facts.nvidia, row), *judge_arch(facts.nvidia, row)] if row is not None else []
    # Without a driver the deck computes on the CPU, and nothing about a GPU can go wrong.
    rest = [finding for finding in judge_storage(facts, Policy()) if finding.rule not in ("disk-full",)]
    return in_order([*judge_nvidia(facts), *fits, *judge_compilers(facts), *judge_headers(facts), *rest])


def in_order(findings: list[Finding]) -> list[Finding]:
    """Sort by severity, keeping the order of the rules."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _arch(facts: Facts) -> str:
    return "" if isinstance(facts.system, Missing) else facts.system.arch


def _row(torch: str, variant: str, index: str, arch: str) -> BuildRow | None:
    for row in builds():
        if (row.torch, row.variant, row.arch) == (torch, variant, arch) and index in ("", row.index):
            return row
    return None


def _installed_torch(facts: Facts) -> list[Finding]:
    """Hold the torch that is installed in the Python against driver and GPUs."""
    if isinstance(facts.python, Missing) or isinstance(facts.python.torch, Missing) or facts.python.torch is None:
        return []
    build = facts.python.torch
    variant = "cu" + build.cuda.replace(".", "") if build.cuda else "cpu"
    row = _row(build.version.split("+")[0], variant, "", _arch(facts))
    return [] if row is None else [*judge_driver(facts.nvidia, row), *judge_arch(facts.nvidia, row)]
