"""Docker and Podman on any machine: does a daemon answer, is there space for images, is it too old to start threads."""

from __future__ import annotations

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.engines import Engine, Engines
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.judge.engines_cdi import judge_cdi
from torchdeck.machine.judge.engines_gpu import judge_engines_gpu
from torchdeck.machine.judge.policy import Policy
from torchdeck.machine.judge.present import driver_of, in_container, older
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

# Before it, Docker's seccomp profile answers clone3 with "not permitted", and glibc 2.34 takes that for an error.
_CLONE3 = (20, 10, 10)


def judge_engines(
    engines: Engines | Missing | None,
    nvidia: Nvidia | Missing,
    surroundings: Surroundings | Missing | None,
    policy: Policy,
) -> list[Finding]:
    """Find what keeps an engine from running a container, or from giving it the GPU.

    Args:
        engines: The engines; None where they were not gathered.
        nvidia: Without a driver, rules about GPUs find nothing.
        surroundings: In a container they find nothing either: its engines are the host's.
        policy: The thresholds.
    """
    if engines is None:
        return []
    gpu = driver_of(nvidia) is not None and not in_container(surroundings)
    if isinstance(engines, Missing):
        return [unknown("container-toolkit-missing", "whether containers can have the GPU", engines)] if gpu else []
    findings = []
    for name, engine in (("Docker", engines.docker), ("Podman", engines.podman)):
        if isinstance(engine, Missing):
            findings.append(unknown("docker-daemon-unreachable", f"how it is with {name}", engine))
        elif engine is not None:
            findings += [*_daemon(engine, surroundings), *_disk(name, engine, policy), *_clone3(engine)]
    if gpu:
        findings += [*judge_engines_gpu(engines, surroundings), *judge_cdi(engines, nvidia)]
    return findings


def _daemon(engine: Engine, surroundings: Surroundings | Missing | None) -> list[Finding]:
    if isinstance(engine.daemon, Missing):
        return [unknown("docker-daemon-unreachable", "whether Docker's daemon answers", engine.daemon)]
    if engine.daemon == "permission-denied":
        return [
            Finding(
                rule="docker-socket-permission",
                severity="info",
                title="Docker's daemon is there, but you may not talk to it",
                cause="Its socket belongs to root and the group docker, and you are in neither.",
                evidence=("connecting to Docker's socket: permission denied",),
                needs="membership in the group docker (which is as good as being root), or a rootless engine",
                mend=('sudo usermod -aG docker "$USER"  (then log in anew)', "dockerd-rootless-setuptool.sh install"),
            )
        ]
    # The command alone, as a client or in a container, is no fault.
    elsewhere = engine.context in ("rootless", "desktop", "other")
    if engine.daemon != "not-running" or in_container(surroundings) or not (engine.daemon_installed or elsewhere):
        return []
    mend = {
        "rootless": ("systemctl --user start docker",),
        "desktop": ("systemctl --user start docker-desktop", "docker context use default"),
        "other": ("docker context use default", "docker context ls"),
    }.get(str(engine.context), ("sudo systemctl start docker",))
    return [
        Finding(
            rule="docker-daemon-unreachable",
            severity="info",
            title="Docker is installed, but its daemon does not run",
            cause="Without it no container starts; a deck on a virtual environment does not need it.",
            evidence=(f"nothing answers on the socket of the context {engine.context}",),
            needs="a running daemon, for decks in containers",
            mend=mend,
        )
    ]


def _disk(name: str, engine: Engine, policy: Policy) -> list[Finding]:
    rule = "docker-disk-full" if engine.server != "podman" else "disk-full"
    free = engine.storage_free_bytes
    if isinstance(free, Missing):
        return [unknown(rule, f"whether {name} has space for an image", free)] if not _silent(engine) else []
    if free is None or free >= policy.docker_bytes:
        return []
    program = "podman" if engine.server == "podman" else "docker"
    move = (
        "set graphroot in /etc/containers/storage.conf to another disk"
        if program == "podman"
        else 'set "data-root" in /etc/docker/daemon.json to another disk, then: sudo systemctl restart docker'
    )
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=f"little space for {name}'s images in {engine.storage}: {free / 1e9:.1f} GB free",
            cause="An image with torch and CUDA is some 8 GB unpacked; a pull that does not fit fails at its end.",
            evidence=(f"{free} bytes free, from statvfs",),
            needs=f"about {policy.docker_bytes / 1e9:.0f} GB",
            mend=(f"{program} system prune  (removes what no container uses)", move),
        )
    ]


def _silent(engine: Engine) -> bool:
    """Return whether another finding has said that the engine does not answer."""
    return isinstance(engine.daemon, Missing) or engine.daemon in ("permission-denied", "not-running")


def _clone3(engine: Engine) -> list[Finding]:
    version = engine.daemon_version
    if engine.server != "docker" or not isinstance(version, str) or not older(version, _CLONE3):
        return []
    return [
        Finding(
            rule="docker-blocks-clone3",
            severity="warning",
            title=f"the Docker daemon {version} keeps newer images from starting threads",
            cause="Its seccomp profile refuses the call clone3, by which images with glibc 2.34 and newer (Ubuntu "
            "22.04, Debian 12) start threads.",
            evidence=(f"daemon {version}, from docker info",),
            needs="Docker 20.10.10 or newer",
            mend=("sudo apt-get install --only-upgrade docker-ce", "docker run --security-opt seccomp=unconfined …"),
        )
    ]
