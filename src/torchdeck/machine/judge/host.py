"""Limits, memory and clock of the machine: what ends a training run that is otherwise right."""

from __future__ import annotations

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.host import Host, Limits, Memory
from torchdeck.machine.facts.network import Network
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.present import driver_of, in_container, num_machines
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding


def judge_host(
    host: Host | Missing | None,
    nvidia: Nvidia | Missing,
    network: Network | Missing | None,
    surroundings: Surroundings | Missing | None,
    policy: Policy,
) -> list[Finding]:
    """Find limits that are too low, memory that is too small, and a clock that nothing keeps.

    Args:
        host: The machine; None where it was not gathered.
        nvidia: Locked memory matters to GPUs that talk through network adapters, and to nothing else here.
        network: Its RDMA adapters.
        surroundings: The container or job, for the command that mends.
        policy: The thresholds.
    """
    if host is None:
        return []
    if isinstance(host, Missing):
        return [unknown("host-ram-exhausted", "memory and limits of this machine", host)]
    return [
        *_memory(host.memory, surroundings, policy),
        *_files(host.limits, surroundings, policy),
        *_processes(host, surroundings, policy),
        *_memlock(host.limits, nvidia, network, surroundings, policy),
        *_clock(host, network, surroundings),
    ]


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"


def _memory(memory: Memory | Missing, surroundings: Surroundings | Missing | None, policy: Policy) -> list[Finding]:
    rule = "host-ram-exhausted"
    if isinstance(memory, Missing):
        return [unknown(rule, "how much memory there is", memory)]
    for value in (memory.limit_bytes, memory.used_bytes, memory.total_bytes, memory.available_bytes):
        if isinstance(value, Missing):
            return [unknown(rule, "how much memory there is", value)]
    total, available = int(memory.total_bytes), int(memory.available_bytes)  # type: ignore[arg-type]
    evidence = [f"{_gib(available)} of {_gib(total)} available, from /proc/meminfo"]
    size, left = total, available
    if isinstance(memory.limit_bytes, int):
        used = memory.used_bytes if isinstance(memory.used_bytes, int) else 0
        evidence.append(f"{_gib(used)} of {_gib(memory.limit_bytes)} used, from the control group ({memory.cgroup})")
        size, left = min(size, memory.limit_bytes), min(left, memory.limit_bytes - used)
    if size < policy.ram_bytes:
        title = f"there are only {_gib(size)} of memory here: a training run will be killed"
        needs = f"at least {_gib(policy.ram_bytes)}"
    elif left < policy.ram_left_bytes:
        title = f"memory is nearly used up: {_gib(max(0, left))} of {_gib(size)} left"
        needs = f"at least {_gib(policy.ram_left_bytes)} left"
    else:
        return []
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=title,
            cause="The kernel ends a process that asks for more memory than there is, without a word in its own log.",
            evidence=tuple(evidence),
            needs=needs,
            mend=_more_memory(surroundings, limited=isinstance(memory.limit_bytes, int) and size == memory.limit_bytes),
        )
    ]


def _more_memory(surroundings: Surroundings | Missing | None, *, limited: bool) -> tuple[str, ...]:
    if isinstance(surroundings, Surroundings):
        if surroundings.slurm is not None:
            return ("sbatch --mem=32G …",)
        if surroundings.wsl is not None:
            return ("set memory=24GB below [wsl2] in .wslconfig of your Windows profile, then: wsl --shutdown",)
        if limited and surroundings.container == "kubernetes":
            return ("raise resources.limits.memory of the container in the pod's manifest",)
        if limited and in_container(surroundings):
            return ("docker run --memory=16g …", "podman run --memory=16g …")
    if limited:
        return ("raise MemoryMax= of the unit or slice, which this names: systemctl status $$",)
    return ("ps aux --sort=-rss | head  (shows what holds it)", "fewer workers: DataLoader(num_workers=2)")


def _files(limits: Limits | Missing, surroundings: Surroundings | Missing | None, policy: Policy) -> list[Finding]:
    rule = "nofile-limit"
    soft = limits if isinstance(limits, Missing) else limits.nofile_soft
    if isinstance(soft, Missing):
        return [unknown(rule, "how many files may be open", soft)]
    if soft is None or soft >= policy.num_files or isinstance(limits, Missing):
        return []
    hard = limits.nofile_hard
    mend: tuple[str, ...] = ("sudo prlimit --pid $$ --nofile=65536:65536",)
    if in_container(surroundings):
        mend = ("docker run --ulimit nofile=65536:65536 …",)
    if isinstance(hard, Missing):
        return [unknown(rule, "how far the limit of open files may be raised", hard)]
    if hard is None or hard > soft:
        mend = (f"ulimit -n {65536 if hard is None else min(hard, 65536)}", *mend)
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=f"a process may have only {soft} files open: DataLoader workers will run out of them",
            cause="Every tensor that a worker hands over takes a file descriptor, and so does every connection.",
            evidence=(f"soft limit {soft}, hard limit {'none' if hard is None else hard}, from /proc/self/limits",),
            needs=f"at least {policy.num_files}",
            mend=mend,
        )
    ]


def _processes(host: Host, surroundings: Surroundings | Missing | None, policy: Policy) -> list[Finding]:
    rule = "process-limit-reached"
    limits = host.limits
    if isinstance(limits, Missing):
        return []  # the rule on open files has said so
    for value in (limits.nproc_soft, limits.pids_max, limits.num_pids):
        if isinstance(value, Missing):
            return [unknown(rule, "how many processes and threads there may be", value)]
    # The kernel holds root to no number of processes.
    held = not (not isinstance(host.user, Missing) and host.user.root)
    findings = []
    needs = f"at least {policy.num_processes}"
    cause = "Each worker, each thread of OpenMP, BLAS and NCCL counts; where none is left, a library cannot start."
    if held and isinstance(limits.nproc_soft, int) and limits.nproc_soft < policy.num_processes:
        findings.append(
            Finding(
                rule=rule,
                severity="warning",
                title=f"you may have only {limits.nproc_soft} processes and threads at once",
                cause=cause,
                evidence=(f"soft limit {limits.nproc_soft} of processes, from /proc/self/limits",),
                needs=needs,
                mend=("ulimit -u 4096", "export OMP_NUM_THREADS=1", "raise nproc in /etc/security/limits.conf"),
            )
        )
    if isinstance(limits.pids_max, int):
        now = limits.num_pids if isinstance(limits.num_pids, int) else 0
        if limits.pids_max < policy.num_processes or limits.pids_max - now < policy.num_processes_left:
            mend = ("docker run --pids-limit=-1 …",) if in_container(surroundings) else ("raise TasksMax= of the unit",)
            findings.append(
                Finding(
                    rule=rule,
                    severity="warning",
                    title=f"{now} of {limits.pids_max} processes and threads of the control group are in use",
                    cause=cause,
                    evidence=(f"pids.max {limits.pids_max}, pids.current {now} of the control group",),
                    needs=f"{needs}, and {policy.num_processes_left} of them free",
                    mend=(*mend, "export OMP_NUM_THREADS=1"),
                )
            )
    return findings


def _memlock(
    limits: Limits | Missing,
    nvidia: Nvidia | Missing,
    network: Network | Missing | None,
    surroundings: Surroundings | Missing | None,
    policy: Policy,
) -> list[Finding]:
    """Judge locked memory where GPUs could talk through an RDMA adapter: elsewhere nothing locks much."""
    rule = "memlock-limit"
    if driver_of(nvidia) is None or not isinstance(network, Network) or isinstance(limits, Missing):
        return []
    layers = network.infiniband
    if isinstance(layers, Missing):
        return [unknown(rule, "whether there are InfiniBand adapters", layers)]
    if not layers or not network.num_uverbs or limits.memlock_exempt is True:
        return []
    soft = limits.memlock_soft_bytes
    if isinstance(soft, Missing):
        return [unknown(rule, "how much memory may be locked", soft)]
    if soft is None or soft >= policy.memlock_bytes:
        return []
    if isinstance(limits.memlock_exempt, Missing):
        return [unknown(rule, "whether the limit of locked memory counts for this process", limits.memlock_exempt)]
    sure = "InfiniBand" in layers or num_machines(surroundings) > 1
    shell = ("ulimit -l unlimited", "put into /etc/security/limits.conf, then log in anew: * - memlock unlimited")
    container = ("docker run --ulimit memlock=-1 …",)
    return [
        Finding(
            rule=rule,
            severity="warning" if sure else "info",
            title=f"only {soft / 2**20:.1f} MiB may be locked: NCCL cannot use the {layers[0]} adapter",
            cause="An RDMA adapter reads and writes memory that is locked in place; the kernel refuses more than this.",
            evidence=(
                f"soft limit {soft} bytes of locked memory, from /proc/self/limits",
                f"active ports: {len(layers)}, link layer {', '.join(sorted(set(layers)))}, from /sys/class/infiniband",
            ),
            needs="no limit of locked memory",
            mend=(
                *(container if in_container(surroundings) else shell),
                "export NCCL_IB_DISABLE=1  (uses TCP instead)",
            ),
        )
    ]


def _clock(host: Host, network: Network | Missing | None, surroundings: Surroundings | Missing | None) -> list[Finding]:
    rule = "clock-not-synchronised"
    kept = host.clock if isinstance(host.clock, Missing) else host.clock.synchronised
    several = num_machines(surroundings) > 1
    if isinstance(kept, Missing):
        return [unknown(rule, "whether the clocks of these machines agree", kept)] if several else []
    if kept is not False:
        return []
    fabric = isinstance(network, Network) and isinstance(network.infiniband, tuple) and bool(network.infiniband)
    return [
        Finding(
            rule=rule,
            severity="warning" if several or fabric else "info",
            title="nothing keeps the clock of this machine right",
            cause="A clock that has drifted away breaks certificates of downloads, and the logs and time-outs of "
            "several machines no longer fit together.",
            evidence=("adjtimex(2) says that the clock is not synchronised", "no time service was found under /run"),
            needs="a running time service",
            mend=("sudo timedatectl set-ntp true", "sudo apt-get install chrony  (or dnf)"),
        )
    ]
