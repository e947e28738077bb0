"""Caches that this user cannot use: no name to build their path from, or somebody else's folder."""

from __future__ import annotations

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.caches import Cache, Caches
from torchdeck.machine.facts.host import Host, User
from torchdeck.machine.judge.present import in_shell
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding, Severity

_OTHER = "cache-owned-by-other-uid"


def judge_caches(caches: Caches | Missing | None, host: Host | Missing | None) -> list[Finding]:
    """Find caches that cannot be named or written.

    Args:
        caches: The caches; None where they were not gathered.
        host: Its user.
    """
    if caches is None:
        return []
    if isinstance(caches, Missing):
        return [unknown(_OTHER, "whether the compile caches can be used", caches)]
    findings = _name(caches, host)
    # Compiling fails without its caches; of the others a read-only one may be meant so.
    for name, cache, variable, severity in (
        ("Inductor's cache", caches.inductor, "TORCHINDUCTOR_CACHE_DIR", "warning"),
        ("Triton's cache", caches.triton, "TRITON_CACHE_DIR", "warning"),
        ("uv's cache", caches.uv, "UV_CACHE_DIR", "warning"),
        ("pip's cache", caches.pip, "PIP_CACHE_DIR", "info"),
        ("Hugging Face's cache", caches.huggingface, "HF_HOME", "info"),
        ("torch.hub's cache", caches.torch_hub, "TORCH_HOME", "info"),
    ):
        if isinstance(cache, Missing):
            if severity == "warning":
                findings.append(unknown(_OTHER, f"whether {name} can be used", cache))
        else:
            findings += _owner(name, cache, variable, "warning" if severity == "warning" else "info")
    return findings


def _name(caches: Caches, host: Host | Missing | None) -> list[Finding]:
    """Inductor calls its folder after the user, by ``getpass.getuser()``, which fails where nothing gives a name.

    Seen so in the source of torch 2.6 and 2.7; 2.15 takes the number instead.
    """
    rule = "cache-uid-without-passwd"
    user = None if host is None or isinstance(host, Missing) else host.user
    if user is None or (isinstance(caches.inductor, Cache) and caches.inductor.variable is not None):
        return []
    if isinstance(user, Missing):
        return [unknown(rule, "whether the user has a name", user)]
    if user.named or user.in_passwd is True:
        return []
    if isinstance(user.in_passwd, Missing):
        return [unknown(rule, "whether the user has a name", user.in_passwd)]
    return [_nameless(rule, user)]


def _nameless(rule: str, user: User) -> Finding:
    return Finding(
        rule=rule,
        severity="warning",
        title=f"the user id {user.uid} has no name: torch.compile cannot form the path of its cache",
        cause="Inductor calls its cache after the user, and neither the environment nor the user database has a name. "
        "torch 2.6 and 2.7 fail then; 2.15 takes the number.",
        evidence=(
            f"the user database has no entry for {user.uid}",
            "none of LOGNAME, USER, LNAME, USERNAME is set",
            "TORCHINDUCTOR_CACHE_DIR is not set",
        ),
        needs="a name, or a folder named outright",
        mend=("export USER=dev LOGNAME=dev", "export TORCHINDUCTOR_CACHE_DIR=/a/folder/of/yours"),
    )


def _owner(name: str, cache: Cache, variable: str, severity: Severity) -> list[Finding]:
    if not cache.exists:
        return []
    foreign = cache.mine is False and not cache.writable
    if not foreign and not cache.num_locked:
        return []
    what = (
        f"belongs to the user id {cache.owner_uid}" if foreign else f"has {cache.num_locked} folder(s) of somebody else"
    )
    return [
        Finding(
            rule=_OTHER,
            severity=severity,
            title=f"{name} at {cache.path} {what}, and may not be written",
            cause="It was filled by root or by another user, often from a container that shares the home folder.",
            evidence=(
                f"owner {cache.owner_uid}, {'not ' if not cache.writable else ''}writable, "
                f"{cache.num_locked} locked folder(s) among those counted",
            ),
            needs="a cache of this user's own",
            mend=(
                f'sudo chown -R "$(id -u):$(id -g)" {in_shell(cache.path)}',
                f"export {variable}=/a/folder/of/yours",
            ),
        )
    ]
