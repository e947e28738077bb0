"""CDI specs: do they describe the driver that is loaded, and has an engine that needs one any."""

from __future__ import annotations

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.engines import CdiSpec, Engine, Engines, Toolkit
from torchdeck.machine.judge.present import driver_of
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

_GENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_REFRESH = "sudo systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service  (toolkit 1.18 and newer)"


def judge_cdi(engines: Engines, nvidia: Nvidia | Missing) -> list[Finding]:
    """Judge the CDI specs on a machine whose driver is loaded."""
    if engines.docker is None and engines.podman is None and engines.cdi == ():
        return []
    if isinstance(engines.cdi, Missing):
        return [unknown("cdi-spec-stale", "which CDI specs there are", engines.cdi)]
    return [*_stale(engines.cdi, nvidia), *_none(engines)]


def in_dirs(spec: CdiSpec, dirs: tuple[str, ...]) -> bool:
    """Return whether a spec lies in one of some folders; /var/run is /run."""
    return _folder(spec.path) in {_run(folder) for folder in dirs}


def _run(folder: str) -> str:
    return "/run/" + folder.removeprefix("/var/run/") if folder.startswith("/var/run/") else folder


def _folder(path: str) -> str:
    return _run(path.rpartition("/")[0])


def _age(seconds: int) -> str:
    return f"{seconds // 86400} days" if seconds >= 2 * 86400 else f"{seconds // 3600} hours"


def _stale(specs: tuple[CdiSpec, ...], nvidia: Nvidia | Missing) -> list[Finding]:
    driver = driver_of(nvidia)
    if driver is None:
        return []
    stale = [spec for spec in specs if spec.absent_devices or spec.driver not in (None, driver.version)]
    sound = [spec for spec in specs if spec not in stale]
    # What is under /run is read last, and wins.
    if any(_folder(spec.path) == "/run/cdi" for spec in sound):
        return []
    findings = []
    for spec in stale:
        other = spec.driver not in (None, driver.version)
        what = f"the driver {spec.driver}" if other else f"{spec.absent_devices[0]}, which is not there"
        findings.append(
            Finding(
                rule="cdi-spec-stale",
                severity="warning",
                title=f"the CDI spec {spec.path} names {what}" + (f"; loaded is {driver.version}" if other else ""),
                cause="A spec is a snapshot: after an update of the driver or a change of hardware its files and "
                "devices are gone, and no container with the GPU starts.",
                evidence=(
                    f"{spec.path} was written {_age(spec.age_s)} ago and names the driver {spec.driver}",
                    f"driver {driver.version}, read from {driver.source}",
                    f"devices that it names and that are not there: {', '.join(spec.absent_devices) or 'none'}",
                ),
                needs="a spec for the driver that is loaded",
                mend=(_GENERATE, _REFRESH),
            )
        )
    return findings


def _none(engines: Engines) -> list[Finding]:
    """Podman gets a GPU by CDI, so it needs a spec; where Docker serves the GPU, or nobody set it up, it is a hint."""
    if not isinstance(engines.podman, Engine) or engines.cdi:
        return []
    docker = engines.docker
    served = isinstance(docker, Engine) and isinstance(docker.runtimes, tuple) and "nvidia" in docker.runtimes
    toolkit = isinstance(engines.toolkit, Toolkit)
    install = () if toolkit else ("install the package nvidia-container-toolkit from NVIDIA's package repository",)
    return [
        Finding(
            rule="cdi-spec-not-found",
            severity="warning" if toolkit and not served else "info",
            title="Podman cannot give a container the GPU: there is no CDI spec for NVIDIA",
            cause="Podman brings a GPU into a container by a CDI spec, which NVIDIA's Container Toolkit writes.",
            evidence=("no spec that names nvidia.com/gpu in /etc/cdi and /var/run/cdi",),
            needs="a CDI spec",
            mend=(*install, _GENERATE, _REFRESH),
        )
    ]
