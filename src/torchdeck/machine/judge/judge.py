"""All rules, and the order in which their findings are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torchdeck.machine.catalogue import BuildRow, builds
from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.judge.caches import judge_caches
from torchdeck.machine.judge.compiling import (
    judge_compilers,
    judge_headers,
    judge_libcuda_link,
    judge_python,
    judge_toolkit,
)
from torchdeck.machine.judge.engines import judge_engines
from torchdeck.machine.judge.gpu import judge_arch, judge_driver, judge_nvidia
from torchdeck.machine.judge.host import judge_host
from torchdeck.machine.judge.network import judge_network
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.storage import judge_storage
from torchdeck.machine.judge.surroundings import judge_node, judge_slurm
from torchdeck.machine.judge.torch_build import judge_torch_build
from torchdeck.machine.records import SEVERITIES, Finding

Rule = Callable[[], Iterable[Finding]]


def judge(facts: Facts, policy: Policy | None = None) -> list[Finding]:
    """Judge a machine: what is wrong, or will go wrong, with what is installed on it or about to be.

    Returns:
        The findings, the gravest first; a rule that lacks its facts contributes one that says so.
    """
    return in_order([finding for found in judge_by_subject(facts, policy).values() for finding in found])


def judge_by_subject(facts: Facts, policy: Policy | None = None) -> dict[str, list[Finding]]:
    """Judge a machine, and keep apart what was judged: a subject without findings is fine.

    Returns:
        The findings by what they are about, in the order in which it is judged.
    """
    policy = policy or Policy()
    rules: dict[str, Rule] = {
        "driver and GPUs": lambda: judge_nvidia(facts, policy),
        "the installed torch": lambda: judge_torch_build(facts, policy),
        "Python": lambda: judge_python(facts),
        "compilers": lambda: judge_compilers(facts),
        "Python's headers": lambda: judge_headers(facts),
        "libcuda": lambda: judge_libcuda_link(facts),
        "nvcc": lambda: judge_toolkit(facts),
        "disks, shared memory and home": lambda: judge_storage(facts, policy),
        "memory, limits and clock": lambda: judge_host(
            facts.host, facts.nvidia, facts.network, facts.surroundings, policy
        ),
        "caches": lambda: judge_caches(facts.caches, facts.host),
        "network interfaces": lambda: judge_network(facts.network, facts.nvidia, facts.surroundings),
        "Slurm": lambda: judge_slurm(facts.surroundings, facts.nvidia),
        "Kubernetes": lambda: judge_node(facts.surroundings, facts.nvidia, facts.engines),
        "container engines": lambda: judge_engines(facts.engines, facts.nvidia, facts.surroundings, policy),
    }
    return {subject: _guarded(rule) for subject, rule in rules.items()}


def _guarded(rule: Rule) -> list[Finding]:
    """Apply a rule; one that fails on facts that nobody thought of says so, and the others go on."""
    try:
        return list(rule())
    except Exception as error:
        return [
            Finding(
                rule="doctor-rule-failed",
                severity="unknown",
                title=f"one rule failed on these facts: {type(error).__name__}: {error}"[:200],
                cause="This is a bug in torchdeck; what the rule would have found is not known.",
                evidence=("all other rules were applied",),
                mend=("torchdeck doctor --save host.json  (and report it with that file)",),
            )
        ]


def judge_for_build(facts: Facts, torch: str, variant: str, index: str) -> list[Finding]:
    """Judge a machine for a deck with this build, whose Python and space are looked at elsewhere."""
    row = _row(torch, variant, index, _arch(facts))
    fits = [*judge_driver(facts.nvidia, row), *judge_arch(facts.nvidia, row)] if row is not None else []
    # Without a driver the deck computes on the CPU, and nothing about a GPU can go wrong.
    rest = [finding for finding in judge_storage(facts, Policy()) if finding.rule not in ("disk-full",)]
    compiling = [
        *judge_compilers(facts),
        *judge_headers(facts),
        *(judge_libcuda_link(facts) if row is None or row.cuda else []),
    ]
    return in_order([*judge_nvidia(facts), *fits, *compiling, *rest])


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
