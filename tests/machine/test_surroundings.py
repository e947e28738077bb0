"""Containers, Slurm, Kubernetes nodes and Windows: by their signs, and what follows for the GPU."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed
from machine_parts import engines, nvidia, slurm, spec, surroundings

from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.surroundings import Node, Slurm, Surroundings
from torchdeck.machine.judge.surroundings import judge_node, judge_slurm
from torchdeck.machine.probes.surroundings import gather_surroundings, read_slurm

GONE = Missing(reason="the probe was ended")
_OUTSIDE = {"proc/1/cgroup": "0::/init.scope\n", "proc/sys/kernel/osrelease": "6.8.0-45-generic\n"}


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {**_OUTSIDE, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({}, {}, None),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "set"}, "kubernetes"),
        ({"run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({}, {"container": "lxc"}, "lxc"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
        ({"proc/1/cgroup": "5:memory:/docker/0123\n"}, {}, "docker"),
        ({"proc/1/cgroup": "5:memory:/kubepods/burstable/pod1\n"}, {}, "kubernetes"),
    ],
)
def test_a_container_is_known_by_its_signs(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], kind: str | None
) -> None:
    assert gather_surroundings(tree(tmp_path, files), environment).container == kind


def test_where_nothing_can_be_read_it_is_not_called_a_machine(tmp_path: Path) -> None:
    found = gather_surroundings(tmp_path, {})
    assert isinstance(found.container, Missing)
    assert isinstance(found.virtual_machine, Missing)


@pytest.mark.parametrize(
    ("release", "version"),
    [("4.4.0-19041-Microsoft", 1), ("5.15.167.4-microsoft-standard-WSL2", 2), ("6.8.0-45-generic", None)],
)
def test_the_versions_of_the_windows_subsystem_are_told_apart(
    tmp_path: Path, release: str, version: int | None
) -> None:
    assert gather_surroundings(tree(tmp_path, {"proc/sys/kernel/osrelease": release + "\n"}), {}).wsl == version


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, False),
        ({"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "0"}, False),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1"}, True),
        ({"SLURM_JOBID": "7", "SLURM_GPUS_PER_NODE": "h100:8"}, True),
        ({"SLURM_JOB_ID": "7", "SLURM_TRES_PER_TASK": "gres/gpu:1"}, True),
    ],
)
def test_a_job_asked_for_gpus_if_slurm_says_so(environment: dict[str, str], expected: bool | None) -> None:
    found = read_slurm(environment)
    assert (None if found is None else found.gpus_requested) is expected


def test_a_node_is_known_by_its_kubelet_and_its_runtime_by_its_configuration(tmp_path: Path) -> None:
    root = tree(tmp_path, {"var/lib/kubelet/config.yaml": "", "etc/containerd/config.toml": "version = 2\n"})
    assert gather_surroundings(root, {}).node == Node(runtime="containerd", knows_nvidia=False)
    tree(tmp_path, {"etc/containerd/conf.d/99-nvidia.toml": 'runtimes.nvidia = "…"\n'})
    assert gather_surroundings(root, {}).node == Node(runtime="containerd", knows_nvidia=True)
    assert gather_surroundings(root, {"KUBERNETES_SERVICE_HOST": "set"}).node is None


def test_a_node_without_a_configuration_that_can_be_found_is_not_known(tmp_path: Path) -> None:
    node = gather_surroundings(tree(tmp_path, {"var/lib/kubelet/config.yaml": ""}), {}).node
    assert node is not None
    assert isinstance(node.knows_nvidia, Missing)


def test_this_machine_has_surroundings_that_survive_being_written() -> None:
    found = gather_surroundings()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Surroundings) == found


def test_a_job_that_did_not_ask_and_sees_no_gpu_is_told_to_ask() -> None:
    blind = changed(nvidia(), "gpus", ())
    (finding,) = judge_slurm(slurm(gpus=False), blind)
    assert (finding.rule, finding.severity) == ("slurm-gpu-not-requested", "warning")
    assert finding.mend[0] == "sbatch --gpus=1 …"
    assert finding.evidence
    (finding,) = judge_slurm(slurm(gpus=False), changed(changed(nvidia(), "gpus", GONE), "driver", None))
    assert "1 NVIDIA GPU(s) on the PCI bus" in finding.evidence


def test_a_job_that_asked_or_that_sees_its_gpus_or_a_machine_without_any_has_no_finding() -> None:
    blind = changed(nvidia(), "gpus", ())
    assert judge_slurm(slurm(gpus=True), blind) == []
    assert judge_slurm(slurm(gpus=False), nvidia()) == []
    assert judge_slurm(slurm(gpus=False), changed(changed(blind, "driver", None), "num_pci", 0)) == []
    assert judge_slurm(surroundings(), blind) == []
    for missing in (None, GONE):
        assert judge_slurm(missing, blind) == []


@pytest.mark.parametrize("runtime", ["containerd", "k3s", "cri-o"])
def test_a_node_whose_runtime_does_not_know_nvidia_is_told_how_to_teach_it(runtime: str) -> None:
    node = surroundings(node=Node(runtime=runtime, knows_nvidia=False))
    (finding,) = judge_node(node, nvidia(), engines(cdi=()))
    assert (finding.rule, finding.severity) == ("k8s-runtime-not-nvidia", "warning")
    assert finding.mend
    assert finding.evidence
    assert judge_node(node, nvidia(), engines(cdi=(spec(),))) == []
    assert judge_node(node, changed(nvidia(), "driver", None), None) == []
    assert judge_node(surroundings(node=Node(runtime=runtime, knows_nvidia=True)), nvidia(), None) == []
    assert judge_node(surroundings(), nvidia(), None) == []


def test_a_node_of_which_it_is_not_known_is_unknown() -> None:
    (finding,) = judge_node(surroundings(node=Node(runtime=GONE, knows_nvidia=GONE)), nvidia(), None)
    assert finding.severity == "unknown"


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["SLURM_JOB_ID", "SLURM_GPUS", "SLURM_NNODES", "container"]), st.text(max_size=9))
)
def test_no_value_of_a_variable_makes_a_reader_fail(environment: dict[str, str]) -> None:
    found = gather_surroundings(Path("/nonexistent"), environment)
    assert found.slurm is None or isinstance(found.slurm, Slurm)
