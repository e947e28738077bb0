"""Which findings can be mended by a command that is safe here and can be undone, and by which. Pure.

What is not in here on purpose: whatever restarts a daemon or the machine, installs a driver, or changes what somebody
else relies on. Those mends are printed, and a person carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from torchdeck.machine.facts import Facts, Missing, Place
from torchdeck.machine.records import Finding

_CDI = "/etc/cdi/nvidia.yaml"


class FixStep(msgspec.Struct, frozen=True, kw_only=True):
    """One command.

    Args:
        argv: What is run.
        backup: A file that is copied first, if it is there, so that it can be put back.
    """

    argv: tuple[str, ...]
    backup: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """How one finding is mended.

    Args:
        rule: The finding's.
        title: What is done, in words.
        steps: The commands, in order.
        undo: How it is undone, in words or as a command.
        as_root: Whether only root may do it.
    """

    rule: str
    title: str
    steps: tuple[FixStep, ...]
    undo: str
    as_root: bool = True


def plan_fixes(findings: Sequence[Finding], facts: Facts, only: str = "") -> list[Fix]:
    """Return the fixes for those findings that have one, in the order of the findings, each once.

    Args:
        findings: What was found.
        facts: The machine it was found on.
        only: The one rule to mend; all when empty.
    """
    fixes = []
    for rule in dict.fromkeys(finding.rule for finding in findings):
        builder = _BUILDERS.get(rule)
        if builder is not None and only in ("", rule):
            fix = builder(facts)
            if fix is not None:
                fixes.append(fix)
    return fixes


def fixable_rules() -> tuple[str, ...]:
    """Return the rules that have a fix on some machine."""
    return tuple(sorted(_BUILDERS))


def _cdi(rule: str) -> Callable[[Facts], Fix]:
    return lambda facts: Fix(
        rule=rule,
        title="make the CDI specification anew for the loaded driver",
        steps=(FixStep(argv=("nvidia-ctk", "cdi", "generate", f"--output={_CDI}"), backup=_CDI),),
        undo=f"put the backup of {_CDI} back",
    )


def _shm(facts: Facts) -> Fix | None:
    """Enlarge shared memory to half of what the machine has; in a container the engine alone can."""
    if isinstance(facts.system, Missing) or facts.system.container or isinstance(facts.storage, Missing):
        return None
    shm = facts.storage.shm
    if not isinstance(shm, Place):
        return None
    return Fix(
        rule="shm-too-small",
        title="enlarge shared memory to half of the machine's, until the next start",
        steps=(FixStep(argv=("mount", "-o", "remount,size=50%", "/dev/shm")),),  # noqa: S108 - this very place
        undo=f"mount -o remount,size={shm.total_bytes} /dev/shm",
    )


def _disk(facts: Facts) -> Fix:
    return Fix(
        rule="disk-full",
        title="remove what uv's cache holds that nothing uses",
        steps=(FixStep(argv=("uv", "cache", "prune")),),
        undo="nothing is lost: uv downloads again what it needs",
        as_root=False,
    )


def _clock(facts: Facts) -> Fix:
    return Fix(
        rule="clock-not-synchronised",
        title="let the system keep its clock by the network",
        steps=(FixStep(argv=("timedatectl", "set-ntp", "true")),),
        undo="timedatectl set-ntp false",
    )


def _uvm(facts: Facts) -> Fix:
    return Fix(
        rule="uvm-device-missing",
        title="load nvidia-uvm and make its device files",
        steps=(FixStep(argv=("nvidia-modprobe", "-u", "-c=0")),),
        undo="they are gone after the next start",
    )


def _fabric(facts: Facts) -> Fix:
    return Fix(
        rule="fabric-manager-not-running",
        title="start the fabric manager",
        steps=(FixStep(argv=("systemctl", "start", "nvidia-fabricmanager")),),
        undo="systemctl stop nvidia-fabricmanager",
    )


def _char_links(facts: Facts) -> Fix:
    return Fix(
        rule="nvml-lost-after-daemon-reload",
        title="make the links under /dev/char that systemd needs to know the GPU by",
        steps=(FixStep(argv=("nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all")),),
        undo="they are gone after the next start",
    )


def _no_cgroups(facts: Facts) -> Fix:
    file = "/etc/nvidia-container-runtime/config.toml"
    return Fix(
        rule="rootless-cgroups-not-disabled",
        title="tell NVIDIA's runtime that a rootless engine cannot set device groups",
        steps=(
            FixStep(
                argv=("nvidia-ctk", "config", "--set", "nvidia-container-cli.no-cgroups", "--in-place"), backup=file
            ),
        ),
        undo=f"put the backup of {file} back",
    )


_BUILDERS: dict[str, Callable[[Facts], Fix | None]] = {
    "cdi-spec-stale": _cdi("cdi-spec-stale"),
    "cdi-spec-not-found": _cdi("cdi-spec-not-found"),
    "shm-too-small": _shm,
    "disk-full": _disk,
    "clock-not-synchronised": _clock,
    "uvm-device-missing": _uvm,
    "fabric-manager-not-running": _fabric,
    "nvml-lost-after-daemon-reload": _char_links,
    "rootless-cgroups-not-disabled": _no_cgroups,
}
