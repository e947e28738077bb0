"""Disks and folders: is there space, may we write, may code run there."""

from __future__ import annotations

from torchdeck.machine.facts import Facts, Missing, Place, Storage
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding


def gb(num_bytes: int) -> str:
    """Return a size in GB for people."""
    return f"{num_bytes / 1e9:.1f} GB"


def judge_storage(facts: Facts, policy: Policy) -> list[Finding]:
    """Find places that are full, unwritable, too small, or where code may not run."""
    storage = facts.storage
    if isinstance(storage, Missing):
        return [unknown("disk-full", "whether there is space", storage)]
    return [
        *_space(storage.data, "disk-full", "decks", policy.deck_bytes, policy),
        *_space(storage.cache, "disk-full", "caches", policy.cache_bytes, policy),
        *_space(storage.tmp, "pip-tmpdir-full", "temporary files", policy.tmp_bytes, policy),
        *_home(storage),
        *_noexec(storage),
        *_shm(storage, policy),
    ]


def _space(place: Place | Missing, rule: str, what: str, need_bytes: int, policy: Policy) -> list[Finding]:
    if isinstance(place, Missing):
        return [unknown(rule, f"whether there is space for {what}", place)]
    findings = []
    move = {
        "decks": ("torchdeck up --dir /another/disk/env", "uv cache prune"),
        "caches": ("export XDG_CACHE_HOME=/another/disk",),
        "temporary files": ("export TMPDIR=/another/disk",),
    }[what]
    if place.free_bytes < need_bytes:
        findings.append(
            Finding(
                rule=rule,
                severity="warning",
                title=f"little space for {what} in {place.path}: {gb(place.free_bytes)} free",
                cause="A download or a compilation that does not fit fails half-way.",
                evidence=(f"{gb(place.free_bytes)} of {gb(place.total_bytes)} free, from statvfs",),
                needs=f"about {gb(need_bytes)}",
                mend=move,
            )
        )
    if place.num_free_inodes is not None and place.num_free_inodes < policy.num_inodes:
        findings.append(
            Finding(
                rule=rule,
                severity="warning",
                title=f"few files can still be made in {place.path}: {place.num_free_inodes} inodes free",
                cause="A file system can run out of inodes while it has space.",
                evidence=("from statvfs",),
                needs=f"about {policy.num_inodes}",
                mend=move,
            )
        )
    if not place.writable:
        findings.append(
            Finding(
                rule="home-not-writable" if what != "temporary files" else "tmp-not-writable",
                severity="error",
                title=f"{what} cannot be written to {place.path}",
                cause="There is no permission, or the file system is read-only.",
                evidence=("asked the kernel with access()",),
                needs="a folder that you may write",
                mend=move if what != "decks" else ("export XDG_DATA_HOME=/a/folder/of/yours",),
            )
        )
    return findings


def _home(storage: Storage) -> list[Finding]:
    if isinstance(storage.home, Missing):
        return [unknown("cache-home-unset", "whether the home folder can be used", storage.home)]
    if storage.home_set and storage.home.exists and storage.home.writable:
        return []
    what = (
        "the variable HOME is not set"
        if not storage.home_set
        else f"{storage.home.path} does not exist"
        if not storage.home.exists
        else f"{storage.home.path} may not be written"
    )
    return [
        Finding(
            rule="cache-home-unset" if not storage.home_set or not storage.home.exists else "home-not-writable",
            severity="warning",
            title=f"the home folder cannot be used: {what}",
            cause="Compile caches, settings and decks go below the home folder unless they are sent elsewhere.",
            evidence=(what,),
            needs="HOME set to a folder that you may write",
            mend=("export HOME=/a/folder/of/yours",),
        )
    ]


def _noexec(storage: Storage) -> list[Finding]:
    findings = []
    for place, rule, what, mend in (
        (storage.tmp, "tmp-noexec", "temporary files", "export TMPDIR=/a/folder/without/noexec"),
        (storage.cache, "cache-noexec", "the compile caches", "export XDG_CACHE_HOME=/a/folder/without/noexec"),
        (storage.data, "data-noexec", "decks", "torchdeck up --dir /a/folder/without/noexec"),
    ):
        if isinstance(place, Missing):
            continue  # the rules on space have said so
        if isinstance(place.noexec, Missing):
            findings.append(unknown(rule, f"whether code may run in {place.path}", place.noexec))
        elif place.noexec:
            findings.append(
                Finding(
                    rule=rule,
                    severity="warning",
                    title=f"code may not run in {place.path}, where {what} go",
                    cause="It is mounted noexec: a compiled library there cannot be loaded.",
                    evidence=(f"{place.path} is on a {place.filesystem} mounted noexec, from /proc/mounts",),
                    needs="a place without noexec",
                    mend=(mend,),
                )
            )
    return findings


def _shm(storage: Storage, policy: Policy) -> list[Finding]:
    shm = storage.shm
    if isinstance(shm, Missing):
        return [unknown("shm-too-small", "how large shared memory is", shm)]
    if not shm.writable:
        return [
            Finding(
                rule="shm-not-writable",
                severity="error",
                title="shared memory may not be written",
                cause="DataLoader workers hand over batches through shared memory.",
                evidence=("asked the kernel with access()",),
                needs="a writable /dev/shm",
                mend=("sudo mount -o remount,mode=1777 /dev/shm",),
            )
        ]
    if shm.free_bytes >= policy.shm_bytes:
        return []
    return [
        Finding(
            rule="shm-too-small",
            severity="warning",
            title=f"shared memory has {shm.free_bytes / 2**20:.0f} MiB free: DataLoader workers will be killed",
            cause="Workers and NCCL exchange data there; one that finds no room dies with a bus error.",
            evidence=(f"{shm.free_bytes / 2**20:.0f} of {shm.total_bytes / 2**20:.0f} MiB free, from statvfs",),
            needs=f"at least {policy.shm_bytes / 2**20:.0f} MiB",
            mend=("docker run --shm-size=8g …  (or --ipc=host)", "sudo mount -o remount,size=50% /dev/shm"),
        )
    ]
