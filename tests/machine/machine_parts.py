"""The parts of a sound machine that the rules on host, network, engines, caches and surroundings look at."""

from __future__ import annotations

from typing import Any

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.caches import Cache, Caches
from torchdeck.machine.facts.engines import CdiSpec, Engine, Engines, Toolkit, ToolkitConfig
from torchdeck.machine.facts.host import Clock, Cpu, Host, Limits, Memory, User
from torchdeck.machine.facts.network import Interface, Network
from torchdeck.machine.facts.surroundings import Slurm, Surroundings

GIB = 2**30
GB = 10**9


def nvidia() -> Nvidia:
    from machine_hosts import h100

    found = h100().nvidia
    assert not isinstance(found, Missing)
    return found


def host() -> Host:
    return Host(
        cpu=Cpu(model="AMD EPYC 9354", arch="x86_64", num_physical=32, num_logical=64, num_usable=64,
                flags=("avx2", "avx512f", "avx512_bf16"), num_numa_nodes=2),
        memory=Memory(total_bytes=512 * GIB, available_bytes=480 * GIB, swap_bytes=0, cgroup="v2", limit_bytes=None,
                      used_bytes=None, quota_cores=None),
        user=User(uid=1000, root=False, in_passwd=True, named=True),
        limits=Limits(nofile_soft=1024, nofile_hard=524_288, memlock_soft_bytes=8 * 2**20, memlock_exempt=False,
                      nproc_soft=2_000_000, stack_soft_bytes=8 * 2**20, pids_max=10_813, num_pids=300),
        clock=Clock(synchronised=True),
    )  # fmt: skip


def interface(name: str, kind: str = "ethernet", **changes: Any) -> Interface:
    values: dict[str, Any] = {"up": True, "virtual": kind != "ethernet", "has_address": True}
    return Interface(name=name, kind=kind, **{**values, **changes})


def network(**changes: Any) -> Network:
    values: dict[str, Any] = {
        "interfaces": (interface("lo", "loopback"), interface("eno1"), interface("docker0", "container", up=False)),
        "nccl_ifname": None, "infiniband": (), "num_uverbs": 0, "proxies": (),
    }  # fmt: skip
    return Network(**{**values, **changes})


def surroundings(**changes: Any) -> Surroundings:
    values: dict[str, Any] = {"container": None, "virtual_machine": False, "node": None, "slurm": None, "wsl": None}
    return Surroundings(**{**values, **changes})


def slurm(*, gpus: bool = True, num_nodes: int | Missing = 1) -> Surroundings:
    return surroundings(slurm=Slurm(gpus_requested=gpus, num_nodes=num_nodes))


def docker(**changes: Any) -> Engine:
    """Docker 28 of a distribution with NVIDIA's runtime registered."""
    values: dict[str, Any] = {
        "path": "/usr/bin/docker", "version": "28.3.2", "server": "docker", "daemon": "reachable",
        "daemon_installed": True, "daemon_version": "28.3.2", "context": "default", "rootless": False,
        "desktop": False, "snap": False, "cgroup_driver": "systemd", "cgroup_version": 2,
        "runtimes": ("io.containerd.runc.v2", "nvidia", "runc"), "default_runtime": "runc",
        "cdi_spec_dirs": ("/etc/cdi", "/var/run/cdi"), "storage": "/var/lib/docker", "storage_free_bytes": 400 * GB,
    }  # fmt: skip
    return Engine(**{**values, **changes})


def podman(**changes: Any) -> Engine:
    """Rootless Podman 5."""
    values: dict[str, Any] = {
        "path": "/usr/bin/podman", "version": "5.4.1", "server": "podman", "daemon": None, "daemon_version": "5.4.1",
        "context": None, "rootless": True, "runtimes": ("crun",), "default_runtime": "crun",
        "cdi_spec_dirs": Missing(reason="podman info does not tell it"), "storage": "~/.local/share/containers/storage",
    }  # fmt: skip
    return docker(**{**values, **changes})


def config(**changes: Any) -> ToolkitConfig:
    values: dict[str, Any] = {
        "path": "/etc/nvidia-container-runtime/config.toml", "no_cgroups": False, "mode": "auto",
        "ldconfig": "@/sbin/ldconfig", "ldconfig_exists": True,
    }  # fmt: skip
    return ToolkitConfig(**{**values, **changes})


def toolkit(**changes: Any) -> Toolkit:
    values: dict[str, Any] = {"version": "1.17.8", "hook": True, "config": config(), "user_config": None}
    return Toolkit(**{**values, **changes})


def spec(path: str = "/etc/cdi/nvidia.yaml", **changes: Any) -> CdiSpec:
    values: dict[str, Any] = {"path": path, "age_s": 86_400, "driver": "550.54.15", "absent_devices": ()}
    return CdiSpec(**{**values, **changes})


def engines(**changes: Any) -> Engines:
    values: dict[str, Any] = {
        "docker": docker(), "podman": None, "toolkit": toolkit(), "cdi": (spec(),), "dev_char_links": True,
    }  # fmt: skip
    return Engines(**{**values, **changes})


def cache(path: str, **changes: Any) -> Cache:
    values: dict[str, Any] = {
        "variable": None, "exists": True, "size_bytes": 100 * 2**20, "complete": True, "mine": True, "writable": True,
        "owner_uid": 1000, "num_locked": 0,
    }  # fmt: skip
    return Cache(path=path, **{**values, **changes})


def caches(**changes: Any) -> Caches:
    values: dict[str, Any] = {
        "inductor": cache("/tmp/torchinductor_$USER"), "triton": cache("~/.triton/cache"),
        "huggingface": cache("~/.cache/huggingface"), "torch_hub": cache("~/.cache/torch"),
        "pip": cache("~/.cache/pip"), "uv": cache("~/.cache/uv"),
    }  # fmt: skip
    return Caches(**{**values, **changes})
