"""Processor, memory, user, limits and clock: from /proc, /sys and the control groups.

Each reader takes the folder that stands for ``/``. What it does not know: limits that a batch system or a
cluster enforces by other means than control groups.
"""

from __future__ import annotations

import ctypes
import os
import platform
import pwd
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.host import Clock, Cpu, Host, Limits, Memory, User
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.files import is_there, names_in, read_number, read_text
from torchdeck.machine.probes.surroundings import read_container, read_virtual_machine

ROOT = Path("/")
_TIMEOUT_S = 1.0
# Those that decide which kernels oneDNN and Inductor choose. ARM calls them otherwise: asimd is NEON.
_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_tile", "asimd", "sve", "bf16")
_CAP_IPC_LOCK = 14  # linux/capability.h
_STA_UNSYNC = 0x0040  # linux/timex.h
# Version 1 writes the largest multiple of a page below 2**63 for "no limit".
_NO_LIMIT = 2**60


def gather_host(root: Path = ROOT) -> Host:
    """Return the machine as this process finds it."""
    return Host(
        cpu=bounded(lambda: read_cpu(root), what="the processor", timeout_s=_TIMEOUT_S),
        memory=bounded(lambda: read_memory(root), what="the memory", timeout_s=_TIMEOUT_S),
        user=bounded(
            lambda: read_user(os.getuid(), os.environ, _passwd_has), what="the user", timeout_s=2 * _TIMEOUT_S
        ),
        limits=bounded(lambda: read_limits(root), what="the limits", timeout_s=_TIMEOUT_S),
        clock=bounded(lambda: read_clock(root, _kernel_says_synchronised), what="the clock", timeout_s=_TIMEOUT_S),
    )


def read_cpu(root: Path, arch: str | None = None) -> Cpu:
    """Return the processor, from /proc/cpuinfo, /proc/self/status and /sys/devices/system."""
    text = read_text(root / "proc/cpuinfo", 8_000_000) or ""
    system = root / "sys/devices/system"
    model = re.search(r"^model name\s*:\s*(\S[^\n]*)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:([^\n]*)$", text, re.MULTILINE)
    has = set(flags[1].split()) if flags else set()
    num_logical = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    status = read_text(root / "proc/self/status") or ""
    usable = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    num_nodes = sum(bool(re.fullmatch(r"node\d+", name)) for name in names_in(system / "node"))
    return Cpu(
        model=model[1].strip()[:100] if model else Missing(reason="/proc/cpuinfo names no model"),
        arch=arch or platform.machine(),
        num_physical=_num_physical(text, system),
        num_logical=num_logical or Missing(reason="/proc/cpuinfo lists no processor"),
        num_usable=_length(usable[1] if usable else "")
        or Missing(reason="/proc/self/status does not say on which processors this may run"),
        flags=tuple(flag for flag in _FLAGS if flag in has)
        if flags
        else Missing(reason="/proc/cpuinfo lists no flags of the processor"),
        num_numa_nodes=num_nodes or 1,
    )


def _num_physical(text: str, system: Path) -> int | Missing:
    """Count cores: pairs of socket and core in cpuinfo, else groups of threads in /sys."""
    sockets = re.findall(r"^physical id\s*:\s*(\d+)$", text, re.MULTILINE)
    cores = re.findall(r"^core id\s*:\s*(\d+)$", text, re.MULTILINE)
    if cores and len(cores) == len(sockets):
        return len(set(zip(sockets, cores, strict=True)))
    groups = set()
    for name in names_in(system / "cpu"):
        if re.fullmatch(r"cpu\d+", name):
            siblings = read_text(system / "cpu" / name / "topology/thread_siblings_list", 1000)
            if siblings:
                groups.add(siblings.strip())
    return len(groups) or Missing(reason="neither /proc/cpuinfo nor /sys tells the cores")


def _length(ranges: str) -> int:
    """Return how many numbers a list such as ``0-3,8`` names; 0 if it is none."""
    num = 0
    for part in ranges.strip().split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part, re.ASCII)
        if match is None:
            return 0
        num += max(0, int(match[2] or match[1]) - int(match[1]) + 1)
    return num


def read_memory(root: Path) -> Memory:
    """Return the memory, from /proc/meminfo and the control groups."""
    text = read_text(root / "proc/meminfo") or ""

    def line(name: str) -> int | Missing:
        match = re.search(rf"^{name}:\s*(\d+) kB$", text, re.MULTILINE | re.ASCII)
        return int(match[1]) * 1024 if match else Missing(reason=f"/proc/meminfo has no {name}")

    version = cgroup_version(root)
    limit, used = _memory_limit(root, version)
    return Memory(
        total_bytes=line("MemTotal"),
        available_bytes=line("MemAvailable"),
        swap_bytes=line("SwapTotal"),
        cgroup=version,
        limit_bytes=limit,
        used_bytes=used,
        quota_cores=_quota(root, version),
    )


def cgroup_version(root: Path) -> str | None:
    """Return ``v1``, ``v2``, ``hybrid``; None without control groups."""
    base = root / "sys/fs/cgroup"
    if is_there(base / "cgroup.controllers"):
        return "v2"
    if is_there(base / "memory") or is_there(base / "cpu") or is_there(base / "devices"):
        return "hybrid" if is_there(base / "unified/cgroup.controllers") else "v1"
    return None


def _groups(root: Path, version: str | None, controller: str) -> list[Path]:
    """Return the folders of this process's group and of all above it, the nearest first.

    Inside a container /proc may name a path of the host that is not there: then the mount itself is the group.
    """
    if version is None:
        return []
    base = root / "sys/fs/cgroup"
    path = ""
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, where = rest.partition(":")
        if (number == "0" and not names) if version == "v2" else controller in names.split(","):
            path = where
    if version != "v2":
        base = base / controller
    parts = [part for part in path.split("/") if part and part != ".."]
    found = [base.joinpath(*parts[:number]) for number in range(len(parts), -1, -1)]
    return [folder for folder in found if is_there(folder)]


def _memory_limit(root: Path, version: str | None) -> tuple[int | Missing | None, int | Missing | None]:
    """Return the tightest limit of the group and those above, and the use of the group that has it."""
    names = ("memory.max", "memory.current") if version == "v2" else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    best: tuple[int, Path] | None = None
    for folder in _groups(root, version, "memory"):
        limit = read_number(folder / names[0])  # None for "max", and where the controller is off
        if limit is not None and limit < _NO_LIMIT and (best is None or limit < best[0]):
            best = (limit, folder)
    if best is None:
        return None, None
    limit, folder = best
    used = read_number(folder / names[1])
    if used is None:
        return limit, Missing(reason=f"{names[1]} of the control group cannot be read")
    stat = read_text(folder / "memory.stat") or ""
    key = "inactive_file" if version == "v2" else "total_inactive_file"
    match = re.search(rf"^{key} (\d+)$", stat, re.MULTILINE | re.ASCII)
    return limit, max(0, used - (int(match[1]) if match else 0))


def _quota(root: Path, version: str | None) -> float | None:
    """Return the smallest share of processor time of the group and those above, in cores."""
    shares = []
    for folder in _groups(root, version, "cpu"):
        if version == "v2":
            words = (read_text(folder / "cpu.max", 100) or "").split()
            quota, period = words if len(words) == 2 else ("", "")
        else:
            quota = (read_text(folder / "cpu.cfs_quota_us", 100) or "").strip()
            period = (read_text(folder / "cpu.cfs_period_us", 100) or "").strip()
        if re.fullmatch(r"\d{1,15}", quota, re.ASCII) and re.fullmatch(r"[1-9]\d{0,14}", period, re.ASCII):
            shares.append(int(quota) / int(period))
    return round(min(shares), 3) if shares else None


def read_user(uid: int, environment: Mapping[str, str], passwd_has: Callable[[int], bool]) -> User:
    """Return who this is, without a name.

    Args:
        uid: The user's number.
        environment: The environment variables.
        passwd_has: Whether the user database has a number; a directory service may take long to answer.
    """
    return User(
        uid=uid,
        root=uid == 0,
        in_passwd=bounded(lambda: passwd_has(uid), what="the user database", timeout_s=_TIMEOUT_S),
        named=any(environment.get(variable) for variable in ("LOGNAME", "USER", "LNAME", "USERNAME")),
    )


def _passwd_has(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def read_limits(root: Path) -> Limits:
    """Return the limits, from /proc/self and the control group."""
    text = read_text(root / "proc/self/limits") or ""

    def limit(name: str, column: int) -> int | Missing | None:
        match = re.search(rf"^Max {name}\s+(unlimited|\d+)\s+(unlimited|\d+)(?:\s|$)", text, re.MULTILINE | re.ASCII)
        if match is None:
            return Missing(reason=f"/proc/self/limits has no {name}")
        return None if match[column] == "unlimited" else int(match[column])

    pids_max, num_pids = _pids(root)
    capabilities = re.search(r"^CapEff:\s*([0-9a-fA-F]{1,32})$", read_text(root / "proc/self/status") or "", re.M)
    return Limits(
        nofile_soft=limit("open files", 1),
        nofile_hard=limit("open files", 2),
        memlock_soft_bytes=limit("locked memory", 1),
        memlock_exempt=bool(int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1) and _in_first_namespace(root)
        if capabilities
        else Missing(reason="/proc/self/status names no capabilities"),
        nproc_soft=limit("processes", 1),
        stack_soft_bytes=limit("stack size", 1),
        pids_max=pids_max,
        num_pids=num_pids,
    )


def _in_first_namespace(root: Path) -> bool:
    """Return whether user ids are the machine's own: inside a user namespace a capability counts for nothing here."""
    return (read_text(root / "proc/self/uid_map", 1000) or "").split()[:3] == ["0", "0", "4294967295"]


def _pids(root: Path) -> tuple[int | None, int | Missing | None]:
    """Return the limit of the group that has the fewest processes left, and how many it has."""
    best: tuple[int, int | Missing] | None = None
    for folder in _groups(root, cgroup_version(root), "pids"):
        most = read_number(folder / "pids.max")
        if most is None:
            continue
        now = read_number(folder / "pids.current")
        left = most - (now or 0)
        if best is None or left < best[0] - (0 if isinstance(best[1], Missing) else best[1]):
            best = (most, Missing(reason="pids.current of the control group cannot be read") if now is None else now)
    return best if best is not None else (None, None)


# Signs that a time service runs: files and folders that chrony, ntpd, OpenNTPD and systemd's own keep while they do.
_TIME_SERVICES = (
    "run/chrony/chronyd.pid",
    "run/chrony/chronyd.sock",
    "run/chronyd.pid",
    "run/ntpd.pid",
    "run/ntp.pid",
    "run/ntpsec/ntpd.pid",
    "run/openntpd/ntpd.sock",
    "run/ntpd.sock",
    "run/systemd/timesync",
    "run/ptp4l",
    "run/phc2sys",
)


def read_clock(root: Path, says_synchronised: Callable[[], bool | None]) -> Clock:
    """Return whether the clock is kept right.

    Args:
        root: The folder that stands for ``/``.
        says_synchronised: The kernel's own flag; None where it does not tell.
    """
    if read_container(root, os.environ) is not None:
        return Clock(synchronised=None)
    if is_there(root / "run/systemd/timesync/synchronized"):
        return Clock(synchronised=True)
    said = says_synchronised()
    if said is None:
        return Clock(synchronised=Missing(reason="the kernel does not tell"))
    if said:
        return Clock(synchronised=True)
    if any(is_there(root / name) for name in _TIME_SERVICES):
        # chrony without rtcsync never sets the kernel's flag, and no service has at boot.
        return Clock(synchronised=Missing(reason="a time service runs, but the kernel has no word of it"))
    if read_virtual_machine(root) is not False:
        return Clock(synchronised=Missing(reason="a virtual machine, whose clock the hypervisor may keep"))
    return Clock(synchronised=False)


class _Timex(ctypes.Structure):
    """The head of ``struct timex`` of adjtimex(2), and room for the rest of it (208 bytes on 64-bit Linux)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def _kernel_says_synchronised() -> bool | None:
    """Ask adjtimex(2), which changes nothing with ``modes`` 0."""
    try:
        call = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    timex = _Timex()
    if call(ctypes.byref(timex)) < 0:
        return None
    return not timex.status & _STA_UNSYNC
