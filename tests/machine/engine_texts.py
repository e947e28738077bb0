"""What ``docker info --format '{{json .}}'`` and ``podman info --format json`` print, shortened to what is read.

Written by hand after the structures of Docker's API and Podman's manual; they also hold what must not be kept: host
names, registries, labels.
"""

from __future__ import annotations

import json
from typing import Any

_RUNC = {"path": "runc", "status": {"org.opencontainers.runtime-spec.features": "{}"}}
_NVIDIA = {"path": "nvidia-container-runtime"}


def docker_info(**changes: Any) -> str:
    """Docker 28 from Docker's packages, without NVIDIA's runtime."""
    document: dict[str, Any] = {
        "ID": "fdd17e44-fa14-44a6-bcea-675088894c15", "Containers": 3, "Images": 12, "Driver": "overlay2",
        "DriverStatus": [["Backing Filesystem", "extfs"]], "CgroupDriver": "systemd", "CgroupVersion": "2",
        "KernelVersion": "6.8.0-45-generic", "OperatingSystem": "Ubuntu 24.04.1 LTS", "OSType": "linux",
        "Architecture": "x86_64", "NCPU": 64, "MemTotal": 540_000_000_000, "DockerRootDir": "/var/lib/docker",
        "HttpProxy": "jane:s3cret@proxy", "Name": "secret-host-7", "Labels": ["owner=jane"],
        "ServerVersion": "28.3.2",
        "Runtimes": {"io.containerd.runc.v2": _RUNC, "runc": _RUNC}, "DefaultRuntime": "runc",
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"], "Warnings": None,
        "ClientInfo": {"Debug": False, "Version": "28.3.2", "Context": "default", "Plugins": [], "Warnings": None},
    }  # fmt: skip
    return json.dumps({**document, **changes}) + "\n"


PLAIN = docker_info()
WITH_NVIDIA = docker_info(Runtimes={"io.containerd.runc.v2": _RUNC, "nvidia": _NVIDIA, "runc": _RUNC})
SNAP = docker_info(
    DockerRootDir="/var/snap/docker/common/var-lib-docker", ServerVersion="24.0.5", CDISpecDirs=None,
    OperatingSystem="Ubuntu Core 22",
)  # fmt: skip
DESKTOP = docker_info(
    OperatingSystem="Docker Desktop", Name="docker-desktop", CgroupDriver="cgroupfs",
    ClientInfo={"Version": "28.3.2", "Context": "desktop-linux"},
)  # fmt: skip
ROOTLESS = docker_info(
    SecurityOptions=["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"],
    DockerRootDir="/home/jane/.local/share/docker", Runtimes={"nvidia": _NVIDIA, "runc": _RUNC},
)  # fmt: skip
OLD = docker_info(
    ServerVersion="20.10.7", CgroupVersion=None, CgroupDriver="cgroupfs", CDISpecDirs=None,
    ClientInfo={"Debug": False, "Warnings": None},
)  # fmt: skip
# The command prints the half of the client and the errors of the daemon, and ends with 1.
_NO_SERVER = {
    "ServerVersion": "",
    "DockerRootDir": "",
    "OperatingSystem": "",
    "Runtimes": None,
    "SecurityOptions": None,
}
DENIED = docker_info(
    **_NO_SERVER,
    ServerErrors=[
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
    ],
)
DOWN = docker_info(
    **_NO_SERVER,
    ServerErrors=["Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"],
)
# Docker's command in front of Podman's service.
BEHIND_PODMAN = docker_info(
    ServerVersion="5.1.2", OperatingSystem="ubuntu", DockerRootDir="/home/jane/.local/share/containers/storage",
    Runtimes={"crun": {"path": "/usr/bin/crun"}}, DefaultRuntime="crun",
    SecurityOptions=["name=seccomp", "name=rootless"],
)  # fmt: skip


def podman_info(**changes: Any) -> str:
    """Rootless Podman 5 of Fedora."""
    document: dict[str, Any] = {
        "host": {
            "arch": "amd64", "cgroupManager": "systemd", "cgroupVersion": "v2", "hostname": "secret-host-7",
            "ociRuntime": {"name": "crun", "path": "/usr/bin/crun", "version": "crun version 1.20"},
            "security": {"rootless": True, "seccompEnabled": True, "selinuxEnabled": True},
        },
        "registries": {"search": ["registry.fedoraproject.org"]},
        "store": {
            "graphDriverName": "overlay", "graphRoot": "/home/jane/.local/share/containers/storage",
            "graphRootAllocated": 10**12, "graphRootUsed": 10**11,
        },
        "version": {"APIVersion": "5.4.1", "Version": "5.4.1", "GoVersion": "go1.23.7", "OsArch": "linux/amd64"},
    }  # fmt: skip
    return json.dumps({**document, **changes}, indent=2)


PODMAN = podman_info()

CDI_SPEC = """---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/dri/renderD129
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib64/libcuda.so.{driver}
    hostPath: /usr/lib64/libcuda.so.{driver}
    options: [ro, nosuid, nodev, bind]
  - containerPath: /usr/lib64/libnvidia-egl-gbm.so.1.1.1
    hostPath: /usr/lib64/libnvidia-egl-gbm.so.1.1.1
"""
CDI_JSON = json.dumps({
    "cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
    "devices": [
        {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/nvidia0"}]}},
    ],
    "containerEdits": {"mounts": [{"hostPath": "/usr/lib64/libnvidia-ml.so.560.35.03"}]},
})  # fmt: skip

TOOLKIT_CONFIG = """
#accept-nvidia-visible-devices-as-volume-mounts = false
[nvidia-container-cli]
#no-cgroups = false
ldconfig = "@/sbin/ldconfig.real"
[nvidia-container-runtime]
mode = "auto"
runtimes = ["runc", "crun"]
"""
