"""What this process runs inside of: signs in the file system, in /proc and in the environment.

What it does not know: a container that hides every sign of itself. Only names of variables from a fixed list are
read, and of their values no more than whether they are set, or a number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.surroundings import Node, Slurm, Surroundings
from torchdeck.machine.probes.files import is_there, names_in, read_text

ROOT = Path("/")
_WORDS = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("cri-containerd", "containerd"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
    ("garden", "other"),
)
_NAMES = {
    "docker": "docker",
    "podman": "podman",
    "oci": "other",
    "lxc": "lxc",
    "lxc-libvirt": "lxc",
    "systemd-nspawn": "systemd-nspawn",
}
# Slurm sets one of these in a job that has GPUs; SLURM_JOB_GPUS and SLURM_STEP_GPUS name them, the others count.
_GPU_VARIABLES = (
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
    "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_GPUS_PER_SOCKET",
)
_RUNTIMES = (
    ("k3s", "var/lib/rancher/k3s/agent/etc/containerd/config.toml"),
    ("cri-o", "etc/crio/crio.conf"),
    ("containerd", "etc/containerd/config.toml"),
)
_DROP_INS = {"k3s": (), "cri-o": ("etc/crio/crio.conf.d",), "containerd": ("etc/containerd/conf.d",)}


def gather_surroundings(root: Path = ROOT, environment: Mapping[str, str] | None = None) -> Surroundings:
    """Return what this process runs inside of."""
    environment = os.environ if environment is None else environment
    container = read_container(root, environment)
    return Surroundings(
        container=container,
        virtual_machine=read_virtual_machine(root),
        node=read_node(root) if container is None else None,
        slurm=read_slurm(environment),
        wsl=read_wsl(root),
    )


def read_container(root: Path, environment: Mapping[str, str]) -> str | Missing | None:
    """Return the kind of container that this is; None outside of any."""
    if environment.get("KUBERNETES_SERVICE_HOST") or is_there(root / "var/run/secrets/kubernetes.io"):
        return "kubernetes"
    if is_there(root / "run/.containerenv"):
        return "podman"
    if is_there(root / ".dockerenv"):
        return "docker"
    if environment.get("APPTAINER_CONTAINER") or environment.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if is_there(root / ".singularity.d"):
        return "apptainer"
    said = (read_text(root / "run/systemd/container", 100) or environment.get("container") or "").strip().lower()
    if said and said != "wsl":
        return _NAMES.get(said, "other")
    groups = read_text(root / "proc/1/cgroup")
    if groups is None:
        return Missing(reason="/proc/1/cgroup cannot be read")
    return next((kind for word, kind in _WORDS if word in groups), None)


def read_virtual_machine(root: Path) -> bool | Missing:
    """Return whether a hypervisor is beneath: the processor says so on x86, the firmware elsewhere."""
    text = read_text(root / "proc/cpuinfo", 100_000)
    flags = re.search(r"^flags\s*:([^\n]*)$", text or "", re.MULTILINE)
    if flags:
        return "hypervisor" in flags[1].split()
    if is_there(root / "sys/hypervisor/type"):
        return True
    vendor = read_text(root / "sys/class/dmi/id/sys_vendor", 200)
    if vendor is not None:
        words = ("qemu", "amazon ec2", "google", "microsoft", "vmware", "xen", "openstack", "oracle")
        return any(word in vendor.lower() for word in words)
    return Missing(reason="neither processor nor firmware tells")


def read_slurm(environment: Mapping[str, str]) -> Slurm | None:
    """Return the Slurm job; None outside of one."""
    if not (environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")):
        return None
    requested = any(environment.get(name, "") not in ("", "0") for name in _GPU_VARIABLES)
    requested = requested or any(
        "gpu" in environment.get(name, "").lower() for name in ("SLURM_JOB_GRES", "SLURM_TRES_PER_TASK")
    )
    nodes = environment.get("SLURM_JOB_NUM_NODES") or environment.get("SLURM_NNODES") or ""
    return Slurm(
        gpus_requested=requested,
        num_nodes=int(nodes)
        if re.fullmatch(r"\d{1,6}", nodes, re.ASCII)
        else Missing(reason="SLURM_JOB_NUM_NODES is not set"),
    )


def read_wsl(root: Path) -> int | None:
    """Return the version of the Windows Subsystem for Linux, by the kernel's release; None outside of it."""
    release = (read_text(root / "proc/sys/kernel/osrelease", 200) or "").strip()
    if "microsoft" not in release.lower():
        return None
    # Version 1 is Windows' own kernel with a made-up release; version 2 is built by Microsoft as …-microsoft-standard.
    return 1 if release.endswith("-Microsoft") else 2


def read_node(root: Path) -> Node | None:
    """Return the Kubernetes node that this machine is; None if it is none."""
    signs = ("var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet.conf", "var/lib/rancher/k3s/agent")
    if not any(is_there(root / sign) for sign in signs):
        return None
    for runtime, name in _RUNTIMES:
        files = [root / name]
        for folder in _DROP_INS[runtime]:
            files += [root / folder / file for file in names_in(root / folder)]
        there = [file for file in files if is_there(file)]
        texts = [text for file in there if (text := read_text(file)) is not None]
        if any("nvidia" in text for text in texts):
            return Node(runtime=runtime, knows_nvidia=True)
        if there:
            unread = len(texts) < len(there)
            reason = f"the configuration of {runtime} cannot be read"
            return Node(runtime=runtime, knows_nvidia=Missing(reason=reason) if unread else False)
    reason = "no configuration of a container runtime was found"
    return Node(runtime=Missing(reason=reason), knows_nvidia=Missing(reason=reason))
