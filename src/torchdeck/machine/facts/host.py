"""Processor, memory, user, limits and clock of the machine, as this process finds them.

A container or a job sees less than the machine has: what is meant by each number is said beside it.
"""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Cpu(Fact, frozen=True, kw_only=True):
    """The processor.

    Args:
        model: Its name, from /proc/cpuinfo; processors other than x86 often do not tell one.
        arch: As the kernel names it: ``x86_64``, ``aarch64``.
        num_physical: Cores of the machine, two threads of one core counted once.
        num_logical: Processors of the machine that are switched on.
        num_usable: Processors that this process may run on (its affinity, not the quota of its group).
        flags: Those that decide how fast torch computes and that this processor has: ``avx2``, ``avx512f``,
            ``avx512_bf16``, ``amx_bf16``, ``amx_tile``; ``asimd``, ``sve``, ``bf16`` on ARM.
        num_numa_nodes: Nodes of memory; 1 where it is all alike.
    """

    model: str | Missing
    arch: str
    num_physical: int | Missing
    num_logical: int | Missing
    num_usable: int | Missing
    flags: tuple[str, ...] | Missing
    num_numa_nodes: int | Missing


class Memory(Fact, frozen=True, kw_only=True):
    """The machine's memory, and what this process's control group may have of it.

    Args:
        total_bytes: All of the machine's, from /proc/meminfo.
        available_bytes: What can still be given out without swapping, by the kernel's own estimate.
        swap_bytes: All of the swap space.
        cgroup: ``v1``, ``v2``, or ``hybrid`` (controllers of version 1 beside an empty version 2); None without
            control groups.
        limit_bytes: The tightest limit of this process's group and those above it; None without one.
        used_bytes: What that group uses now, file cache that can be dropped left out; None without a limit.
        quota_cores: Processor time that the group may use, in cores; None without a limit.
    """

    total_bytes: int | Missing
    available_bytes: int | Missing
    swap_bytes: int | Missing
    cgroup: str | None
    limit_bytes: int | Missing | None
    used_bytes: int | Missing | None
    quota_cores: float | Missing | None


class User(Fact, frozen=True, kw_only=True):
    """Who runs this; never a name.

    Args:
        uid: The user's number.
        root: Whether that is 0.
        in_passwd: Whether the number has an entry in the user database.
        named: Whether one of the variables LOGNAME, USER, LNAME, USERNAME gives a name, which Python's ``getpass``
            takes before it asks the database.
    """

    uid: int
    root: bool
    in_passwd: bool | Missing
    named: bool


class Limits(Fact, frozen=True, kw_only=True):
    """Limits of this process, from /proc/self/limits and its control group; None where there is no limit.

    Args:
        nofile_soft: Open files; a program may raise it up to ``nofile_hard``.
        nofile_hard: Open files that the user may ask for.
        memlock_soft_bytes: Memory that may be locked, as network adapters need it.
        memlock_exempt: Whether the kernel does not hold this process to it: it has the capability CAP_IPC_LOCK, and not
            merely inside a user namespace.
        nproc_soft: Processes and threads of this user.
        stack_soft_bytes: Stack of one thread.
        pids_max: Processes and threads of this process's control group.
        num_pids: How many that group has now; None where it has no limit.
    """

    nofile_soft: int | Missing | None
    nofile_hard: int | Missing | None
    memlock_soft_bytes: int | Missing | None
    memlock_exempt: bool | Missing
    nproc_soft: int | Missing | None
    stack_soft_bytes: int | Missing | None
    pids_max: int | Missing | None
    num_pids: int | Missing | None


class Clock(Fact, frozen=True, kw_only=True):
    """The system's clock.

    Args:
        synchronised: Whether something keeps it right; None in a container, whose clock is the host's. False only
            where the kernel says that it is not, no time service runs, and no hypervisor may keep it instead.
    """

    synchronised: bool | Missing | None


class Host(Fact, frozen=True, kw_only=True):
    """The machine as this process finds it."""

    cpu: Cpu | Missing
    memory: Memory | Missing
    user: User | Missing
    limits: Limits | Missing
    clock: Clock | Missing
