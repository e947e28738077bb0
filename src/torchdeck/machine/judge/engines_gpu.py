"""Docker on a machine with a GPU: can it give the GPU to a container, and will the container keep it.

What it does not know: whether a daemon was started anew since its configuration was written.
"""

from __future__ import annotations

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import CdiSpec, Engine, Engines, Toolkit, ToolkitConfig
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.judge.engines_cdi import in_dirs
from torchdeck.machine.judge.present import older
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding

_INSTALL = "install the package nvidia-container-toolkit from NVIDIA's package repository"
_CONFIGURE = ("sudo nvidia-ctk runtime configure --runtime=docker", "sudo systemctl restart docker")
_GPUS_FLAG = (19, 3)  # docker run --gpus
_CGROUP2 = (1, 8)  # release notes of the Container Toolkit


def judge_engines_gpu(engines: Engines, surroundings: Surroundings | Missing | None) -> list[Finding]:
    """Judge Docker, and NVIDIA's toolkit, on a machine whose driver is loaded."""
    docker = engines.docker
    findings = [*_toolkit_files(engines.toolkit)]
    for engine in (engines.docker, engines.podman):
        if isinstance(engine, Engine):
            findings += _old_toolkit(engine, engines.toolkit)
            break
    if not isinstance(docker, Engine):
        return findings
    findings += _cli(docker)
    wsl = isinstance(surroundings, Surroundings) and surroundings.wsl is not None
    if docker.server == "podman" or docker.daemon == "remote":
        return findings
    if (docker.desktop is True or docker.context == "desktop") and not wsl:
        return [*findings, _desktop(docker)]
    if docker.snap:
        return [*findings, _snap(docker)]
    if docker.daemon != "reachable" or docker.desktop is True:
        return findings
    return [*findings, *_toolkit_missing(docker, engines), *_rootless(docker, engines), *_reload(docker, engines)]


def _cli(docker: Engine) -> list[Finding]:
    if isinstance(docker.version, Missing):
        return [unknown("docker-cli-too-old", "how old Docker's command is", docker.version)]
    if not older(docker.version, _GPUS_FLAG):
        return []
    return [
        Finding(
            rule="docker-cli-too-old",
            severity="warning",
            title=f"the command docker {docker.version} does not know --gpus",
            cause="The flag belongs to the command, whatever the daemon's version is.",
            evidence=(f"{docker.path} is version {docker.version}",),
            needs="Docker 19.03 or newer",
            mend=("sudo apt-get install docker-ce-cli", "type -a docker  (shows which one is found first)"),
        )
    ]


def _desktop(docker: Engine) -> Finding:
    return Finding(
        rule="docker-desktop-vm",
        severity="warning",
        title="docker talks to Docker Desktop, whose virtual machine has no GPU",
        cause="Docker Desktop for Linux runs containers in a virtual machine that the host's driver does not reach.",
        evidence=(f"context {docker.context}, Docker Desktop: {'yes' if docker.desktop is True else 'not asked'}",),
        needs="the engine of the machine itself",
        mend=("docker context use default", "sudo apt-get install docker-ce docker-ce-cli containerd.io"),
    )


def _snap(docker: Engine) -> Finding:
    knows = isinstance(docker.runtimes, tuple) and _nvidia_runtime(docker.runtimes)
    return Finding(
        rule="docker-snap-confined",
        severity="info" if knows else "warning",
        title="Docker comes from a snap, which cannot see the driver's libraries",
        cause="A snap is confined: the host's libraries and the Container Toolkit lie outside of what it sees. Newer "
        "snaps bring a toolkit of their own."
        if knows
        else "A snap is confined: the host's libraries and the Container Toolkit lie outside of what it sees.",
        evidence=(f"{docker.path}, storage {docker.storage if isinstance(docker.storage, str) else 'not known'}",),
        needs="Docker from a package",
        mend=("sudo snap remove docker", "sudo apt-get install docker-ce docker-ce-cli containerd.io", _INSTALL),
    )


def _nvidia_runtime(runtimes: tuple[str, ...]) -> bool:
    return any(name == "nvidia" or name.startswith("nvidia-") for name in runtimes)


def _toolkit_missing(docker: Engine, engines: Engines) -> list[Finding]:
    """Judge whether Docker has a way to the GPU: NVIDIA's runtime, its hook, or CDI."""
    rule = "container-toolkit-missing"
    what = "whether Docker can give a container the GPU"
    if docker.runtimes is None or isinstance(docker.runtimes, Missing):
        return [unknown(rule, what, docker.runtimes or Missing(reason="Docker was not asked for its runtimes"))]
    if _nvidia_runtime(docker.runtimes):
        return []
    for value in (docker.cdi_spec_dirs, engines.cdi, engines.toolkit):
        if isinstance(value, Missing):
            return [unknown(rule, what, value)]
    dirs = docker.cdi_spec_dirs if isinstance(docker.cdi_spec_dirs, tuple) else ()
    specs = engines.cdi if isinstance(engines.cdi, tuple) else ()
    if any(in_dirs(spec, dirs) for spec in specs):
        return []
    seen = (
        f"runtimes of Docker: {', '.join(docker.runtimes) or 'none'}, from docker info",
        f"CDI specs for NVIDIA: {', '.join(spec.path for spec in specs) or 'none'}",
        f"folders in which Docker looks for CDI specs: {', '.join(dirs) or 'none'}",
    )
    if specs:
        return [_spec_unseen(docker, specs, dirs, seen)]
    hook = isinstance(engines.toolkit, Toolkit) and engines.toolkit.hook
    return [
        Finding(
            rule=rule,
            severity="info" if hook else "warning",
            title="Docker does not know NVIDIA's runtime"
            if hook
            else "Docker cannot give a container the GPU: there is no NVIDIA Container Toolkit",
            cause="The toolkit is installed, but not registered; --gpus works if the daemon was started after it."
            if hook
            else "The driver is loaded, but nothing tells Docker how to bring it into a container.",
            evidence=seen,
            needs="the NVIDIA Container Toolkit, registered with Docker",
            mend=_CONFIGURE if hook else (_INSTALL, *_CONFIGURE),
        )
    ]


def _spec_unseen(docker: Engine, specs: tuple[CdiSpec, ...], dirs: tuple[str, ...], seen: tuple[str, ...]) -> Finding:
    if not dirs:
        file = "~/.config/docker/daemon.json" if docker.rootless is True else "/etc/docker/daemon.json"
        restart = "systemctl --user restart docker" if docker.rootless is True else "sudo systemctl restart docker"
        return Finding(
            rule="cdi-disabled",
            severity="warning",
            title="there is a CDI spec for the GPU, but CDI is off in this Docker daemon",
            cause="Docker before 28.3 reads CDI specs only when it is told to, and before 25 not at all.",
            evidence=(f"daemon {docker.daemon_version}", *seen),
            needs="CDI switched on, or NVIDIA's runtime",
            mend=(f'put {{"features": {{"cdi": true}}}} into {file}, then: {restart}', *_CONFIGURE),
        )
    return Finding(
        rule="cdi-spec-not-found",
        severity="warning",
        title=f"Docker does not look where the CDI spec for the GPU is: {specs[0].path}",
        cause="A spec in another folder than those that the engine reads does not exist for it.",
        evidence=seen,
        needs=f"the spec in {dirs[0]}",
        mend=("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", *_CONFIGURE),
    )


def _old_toolkit(engine: Engine, toolkit: Toolkit | Missing | None) -> list[Finding]:
    rule = "toolkit-too-old-for-cgroup2"
    if toolkit is None or engine.cgroup_version in (None, 1):
        return []
    what = "whether NVIDIA's Container Toolkit is new enough for cgroup v2"
    version = toolkit if isinstance(toolkit, Missing) else toolkit.version
    if isinstance(version, Missing):
        return [unknown(rule, what, version)]
    if not older(version, _CGROUP2):
        return []
    if isinstance(engine.cgroup_version, Missing):
        return [unknown(rule, what, engine.cgroup_version)]
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=f"NVIDIA's Container Toolkit {version} cannot handle cgroup v2",
            cause="It sets the rules for device files as version 1 had them, which this machine does not have.",
            evidence=(f"toolkit {version}, by its own program", "cgroup version 2, from the engine's info"),
            needs="NVIDIA Container Toolkit 1.8 or newer",
            mend=("sudo apt-get install --only-upgrade nvidia-container-toolkit", *_CONFIGURE[1:]),
        )
    ]


def _toolkit_files(toolkit: Toolkit | Missing | None) -> list[Finding]:
    config = toolkit.config if isinstance(toolkit, Toolkit) else None
    if not isinstance(config, ToolkitConfig) or config.ldconfig is None:
        return []
    if config.ldconfig_exists is not False and config.ldconfig.startswith("@"):
        return []
    absent = config.ldconfig_exists is False
    return [
        Finding(
            rule="toolkit-ldconfig-wrong",
            severity="warning",
            title=f"NVIDIA's runtime would call {config.ldconfig}, "
            + ("which is not there" if absent else "from inside the container"),
            cause="Without a run of the host's ldconfig a container does not find the driver's libraries.",
            evidence=(f"ldconfig = {config.ldconfig} in {config.path}",),
            needs="the host's own ldconfig, with @ before its path",
            mend=(
                'set ldconfig = "@/sbin/ldconfig"  (Ubuntu: "@/sbin/ldconfig.real") below [nvidia-container-cli] in '
                f"{config.path}",
            ),
        )
    ]


def _rootless(docker: Engine, engines: Engines) -> list[Finding]:
    rule = "rootless-cgroups-not-disabled"
    toolkit = engines.toolkit
    if isinstance(docker.rootless, Missing):
        return [unknown(rule, "whether Docker runs rootless", docker.rootless)]
    uses_hook = isinstance(docker.runtimes, tuple) and _nvidia_runtime(docker.runtimes)
    if docker.rootless is not True or not uses_hook or not isinstance(toolkit, Toolkit):
        return []
    config = toolkit.user_config if toolkit.user_config is not None else toolkit.config
    if isinstance(config, Missing):
        return [unknown(rule, "whether NVIDIA's runtime leaves control groups alone", config)]
    if config is not None and (config.no_cgroups or config.mode == "cdi"):
        return []
    where = "no configuration file was found" if config is None else f"no-cgroups = false in {config.path}"
    return [
        Finding(
            rule=rule,
            severity="warning",
            title="rootless Docker would try to change control groups for the GPU, which it may not",
            cause="NVIDIA's hook sets the rules for device files unless it is told to leave them alone.",
            evidence=("rootless, from docker info", where),
            needs="no-cgroups = true in this user's own configuration, for a daemon that runs as root needs false",
            mend=(
                "mkdir -p ~/.config/nvidia-container-runtime && sed 's/^#*no-cgroups *=.*/no-cgroups = true/' "
                "/etc/nvidia-container-runtime/config.toml > ~/.config/nvidia-container-runtime/config.toml",
                "docker run --device nvidia.com/gpu=all …",
            ),
        )
    ]


def _reload(docker: Engine, engines: Engines) -> list[Finding]:
    """Judge whether a reload of systemd would take the GPU away from running containers."""
    toolkit = engines.toolkit
    config = toolkit.config if isinstance(toolkit, Toolkit) else None
    cdi = isinstance(config, ToolkitConfig) and config.mode == "cdi"
    uses_hook = isinstance(docker.runtimes, tuple) and _nvidia_runtime(docker.runtimes)
    if not uses_hook or docker.rootless is True or cdi or engines.dev_char_links is not False:
        return []
    rule = "nvml-lost-after-daemon-reload"
    if isinstance(docker.cgroup_driver, Missing):
        return [unknown(rule, "whether systemd keeps the devices of containers", docker.cgroup_driver)]
    if docker.cgroup_driver != "systemd":
        return []
    return [
        Finding(
            rule=rule,
            severity="info",
            title="a reload of systemd takes the GPU away from running containers",
            cause="systemd sets the device rules of a container anew, and knows NVIDIA's devices only by links under "
            "/dev/char; an unattended upgrade is enough.",
            evidence=("cgroup driver systemd, from docker info", "no link 195:* in /dev/char"),
            needs="the links, or containers that ask for the GPU by CDI",
            mend=(
                "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
                "docker run --device nvidia.com/gpu=all …",
            ),
        )
    ]
