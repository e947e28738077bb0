"""A Slurm job without GPUs on a machine that has them, and a Kubernetes node whose runtime does not know NVIDIA's."""

from __future__ import annotations

from torchdeck.machine.facts import Driver, Missing, Nvidia
from torchdeck.machine.facts.engines import Engines
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.judge.present import driver_of
from torchdeck.machine.judge.unknown import unknown
from torchdeck.machine.records import Finding


def judge_slurm(surroundings: Surroundings | Missing | None, nvidia: Nvidia | Missing) -> list[Finding]:
    """Find a job that sees none of the GPUs of its machine because it asked for none."""
    if not isinstance(surroundings, Surroundings) or surroundings.slurm is None or surroundings.slurm.gpus_requested:
        return []
    if isinstance(nvidia, Missing) or (isinstance(nvidia.gpus, tuple) and nvidia.gpus):
        return []  # a whole machine for one job shows all of its GPUs
    on_bus = isinstance(nvidia.num_pci, int) and nvidia.num_pci > 0
    driver = isinstance(nvidia.driver, Driver)
    if not on_bus and not driver:
        return []
    evidence = ["a Slurm job, by SLURM_JOB_ID, without SLURM_JOB_GPUS, SLURM_GPUS… or a gres of GPUs"]
    if on_bus:
        evidence.append(f"{nvidia.num_pci} NVIDIA GPU(s) on the PCI bus")
    evidence.append(nvidia.gpus.reason if isinstance(nvidia.gpus, Missing) else "the driver shows no GPU")
    return [
        Finding(
            rule="slurm-gpu-not-requested",
            severity="warning",
            title="this Slurm job did not ask for a GPU, and sees none of this machine's",
            cause="Slurm hides the device files of GPUs that a job has not been given.",
            evidence=tuple(evidence),
            needs="a job with GPUs",
            mend=(
                "sbatch --gpus=1 …",
                "srun --gres=gpu:1 --pty bash",
                "sinfo -o '%P %G'  (shows which GPUs there are)",
            ),
        )
    ]


def judge_node(
    surroundings: Surroundings | Missing | None, nvidia: Nvidia | Missing, engines: Engines | Missing | None
) -> list[Finding]:
    """Find a Kubernetes node with GPUs whose container runtime has no way to hand them out."""
    rule = "k8s-runtime-not-nvidia"
    if not isinstance(surroundings, Surroundings) or surroundings.node is None or driver_of(nvidia) is None:
        return []
    knows = surroundings.node.knows_nvidia
    if isinstance(engines, Engines) and isinstance(engines.cdi, tuple) and engines.cdi:
        return []  # containerd and CRI-O hand out what a CDI spec names
    if isinstance(knows, Missing):
        return [unknown(rule, "whether the container runtime of this Kubernetes node knows NVIDIA's", knows)]
    if knows:
        return []
    runtime = str(surroundings.node.runtime)
    configure = {
        "containerd": ("sudo nvidia-ctk runtime configure --runtime=containerd", "sudo systemctl restart containerd"),
        "cri-o": ("sudo nvidia-ctk runtime configure --runtime=crio", "sudo systemctl restart crio"),
        "k3s": ("install nvidia-container-toolkit, then: sudo systemctl restart k3s  (or k3s-agent)",),
    }
    return [
        Finding(
            rule=rule,
            severity="warning",
            title=f"this Kubernetes node has GPUs, but its {runtime} does not know NVIDIA's runtime",
            cause="A pod gets the driver's files from NVIDIA's runtime; Docker's configuration does not count here.",
            evidence=(f"no nvidia in the configuration of {runtime}", "no CDI spec for NVIDIA"),
            needs="NVIDIA's runtime as runtime class or default",
            mend=configure.get(runtime, ("sudo nvidia-ctk runtime configure --runtime=containerd",)),
        )
    ]
