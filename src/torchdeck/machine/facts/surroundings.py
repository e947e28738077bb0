"""What this process runs inside of: a container, a Kubernetes node or pod, a Slurm job, a virtual machine, Windows."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Slurm(Fact, frozen=True, kw_only=True):
    """The Slurm job that this runs in.

    Args:
        gpus_requested: Whether it asked for GPUs, by the variables that Slurm sets.
        num_nodes: Machines of the job.
    """

    gpus_requested: bool
    num_nodes: int | Missing


class Node(Fact, frozen=True, kw_only=True):
    """A machine that Kubernetes runs pods on, seen from outside of them.

    Args:
        runtime: ``containerd``, ``k3s`` or ``cri-o``: what its configuration was found of.
        knows_nvidia: Whether that configuration names NVIDIA's runtime.
    """

    runtime: str | Missing
    knows_nvidia: bool | Missing


class Surroundings(Fact, frozen=True, kw_only=True):
    """What this process runs inside of.

    Args:
        container: ``docker``, ``podman``, ``kubernetes``, ``containerd``, ``lxc``, ``systemd-nspawn``, ``apptainer`` or
            ``other``; None outside.
        virtual_machine: Whether a hypervisor is beneath.
        node: The Kubernetes node that this is; None if it is none.
        slurm: The job that this runs in; None outside.
        wsl: 1 or 2, the version of the Windows Subsystem for Linux; None outside.
    """

    container: str | Missing | None
    virtual_machine: bool | Missing
    node: Node | None
    slurm: Slurm | None
    wsl: int | None
