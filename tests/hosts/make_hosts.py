"""Writes the machines of this folder: each a sound machine with what is said of it, and the rules an expert would name.

    python tests/hosts/make_hosts.py

The expected rules are written here by hand, from what is wrong with the machine; ``tests/machine/test_judge.py`` holds
the judge against them. ``cpu_machine.json`` alone is recorded, by ``torchdeck doctor --save``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent / "machine"), str(Path(__file__).parent.parent)]

import machine_parts as parts  # noqa: E402
from machine_hosts import changed, place  # noqa: E402
from test_nvidia_judge import gpu, library, machine, pci  # noqa: E402

from torchdeck.machine.facts import Facts, Missing, TorchBuild, encode_facts  # noqa: E402
from torchdeck.machine.facts.nvidia import (  # noqa: E402
    Clocks,
    Ecc,
    Fabric,
    Kernel,
    Mig,
    Processes,
    Xid,
)
from torchdeck.machine.facts.python import Library, Package, Wheel  # noqa: E402

HERE = Path(__file__).parent
GB, GIB = 10**9, 2**30
CU124 = TorchBuild(version="2.6.0+cu124", cuda="12.4")


def having(facts: Facts, **values: Any) -> Facts:
    """Return facts with values changed; dots are written as two underscores."""
    for path, value in values.items():
        facts = changed(facts, path.replace("__", "."), value)
    return facts


def with_gpu(name: str, cc: tuple[int, int], gib: float, driver: str = "550.54.15", num: int = 1, **more: Any) -> Facts:
    """Return a sound machine with other GPUs under another driver."""
    gpus = tuple(gpu(index, name=name, cc=cc, memory_bytes=int(gib * GIB), **more) for index in range(num))
    facts = having(machine(num), nvidia__gpus=gpus, nvidia__driver__version=driver)
    major = int(driver.split(".", maxsplit=1)[0])
    cuda = (
        "13.0"
        if major >= 580
        else "12.8"
        if major >= 570
        else "12.4"
        if major >= 550
        else "12.2"
        if major >= 535
        else "11.4"
    )
    spec = parts.spec(driver=driver)
    return having(
        facts,
        nvidia__driver__cuda=cuda,
        nvidia__host__nvml=library("libnvidia-ml", driver),
        nvidia__host__libcuda=library("libcuda", driver),
        engines=parts.engines(cdi=(spec,)),
    )


def in_container(facts: Facts, kind: str = "/.dockerenv") -> Facts:
    """Return a machine as it is seen from inside a container, which has no engine of its own."""
    return having(facts, system__container=kind, surroundings=parts.surroundings(container="docker"),
                  engines=parts.engines(docker=None, toolkit=None, cdi=(), dev_char_links=None),
                  host__clock__synchronised=None)  # fmt: skip


def no_gpu(facts: Facts) -> Facts:
    """Return a machine without any NVIDIA part."""
    return having(facts, nvidia__driver=None, nvidia__gpus=(), nvidia__num_pci=0, nvidia__devices=(), nvidia__library=False,
                  nvidia__nvml="not-asked", nvidia__host__pci=(), nvidia__host__nvml=None, nvidia__host__libcuda=None,
                  nvidia__host__modules=(), nvidia__host__num_caps=0, nvidia__host__num_char_links=0,
                  nvidia__host__kernels=(Kernel(release="6.1.0", running=True, module=None, signed=None),),
                  toolchain__libcuda=None, toolchain__libcuda_for_linking=None, engines=parts.engines(toolkit=None, cdi=()))  # fmt: skip


def no_driver(facts: Facts, bound: str | None, kind: str = "3d") -> Facts:
    """Return a machine whose GPU has no NVIDIA driver loaded, and what is bound to it instead."""
    facts = having(facts, nvidia__driver=None, nvidia__gpus=(), nvidia__devices=(), nvidia__library=False,
                   nvidia__nvml="no-library", nvidia__host__modules=(), nvidia__host__nvml=None, nvidia__host__libcuda=None,
                   nvidia__host__pci=(pci(0, kind=kind, driver=bound),), nvidia__num_pci=1,
                   nvidia__host__num_caps=0, nvidia__host__num_char_links=0)  # fmt: skip
    return having(facts, toolchain__libcuda=None, toolchain__libcuda_for_linking=None,
                  nvidia__host__kernels=(Kernel(release="6.1.0", running=True, module=None, signed=None),),
                  engines=parts.engines(docker=None, toolkit=None, cdi=()))  # fmt: skip


def shadowed() -> TorchBuild:
    """Return torch 2.6.0 whose cuDNN a folder in LD_LIBRARY_PATH puts another one in front of."""
    own = "~/env/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
    other = Library(soname="libcudnn.so.9", needed_by="libtorch_cuda.so", path="/usr/local/cuda/lib64/libcudnn.so.9",
                    via="LD_LIBRARY_PATH", own=own, version="8.9.7")  # fmt: skip
    return TorchBuild(version="2.6.0+cu124", cuda="12.4", libraries=(other,))


def drifted() -> TorchBuild:
    """Return torch 2.6.0 whose cuDNN wheel somebody upgraded."""
    wheel = Wheel(name="nvidia-cudnn-cu12", wanted="==9.1.0.70", found=("9.5.1.17",))
    return TorchBuild(version="2.6.0+cu124", cuda="12.4", wheels=(wheel,))


def unpaired() -> TorchBuild:
    """Return torch 2.6.0 beside a torchvision for another torch."""
    vision = Package(name="torchvision", version="0.20.1", wants_torch="==2.5.1")
    return TorchBuild(version="2.6.0+cu124", cuda="12.4", companions=(vision, Package(name="triton", version="3.2.0")))


def hosts() -> dict[str, tuple[str, Facts, list[str]]]:
    """Return each machine: what it is, its facts, and the rules that an expert would name."""
    h100s = with_gpu(
        "NVIDIA H100 80GB HBM3", (9, 0), 79.6, num=8, fabric=Fabric(state="completed", status=0, faults=())
    )
    switched = having(h100s, nvidia__host__pci=(*(pci(i) for i in range(8)), pci(8, kind="nvswitch")),
                      nvidia__host__fabric_manager=True)  # fmt: skip
    ti, t4 = "NVIDIA GeForce GTX 1080 Ti", "Tesla T4"
    mig = Mig(enabled=True, pending=True, num_instances=2)
    hot = Clocks(sm_mhz=1095, sm_max_mhz=1980, reasons=("hw-thermal-slowdown",))
    shm = place("/dev/shm", free_bytes=64 * 2**20, total_bytes=64 * 2**20, filesystem="tmpfs")
    bad_ecc = Ecc(enabled=True, num_uncorrected_volatile=3, num_uncorrected_aggregate=3, retirement_pending=None,
                  remap_pending=True, remap_failed=False)  # fmt: skip
    lost = gpu(1, name="unknown", cc=Missing(reason="NVML: GPU is lost"), fault="gpu-is-lost",
               memory_bytes=Missing(reason="NVML: GPU is lost"))  # fmt: skip
    h100_0 = machine(2).nvidia.gpus[0]  # type: ignore[union-attr, index]
    wsl = having(with_gpu("NVIDIA GeForce RTX 4090", (8, 9), 24, "560.94"), system__wsl=True, nvidia__devices=(),
                 nvidia__num_pci=0, nvidia__host__pci=(), nvidia__host__modules=(), nvidia__host__kernels=(),
                 surroundings=parts.surroundings(wsl=2), nvidia__host__num_caps=0, nvidia__host__num_char_links=0)  # fmt: skip
    updated = having(machine(1), nvidia__gpus=Missing(reason="NVML: Driver/library version mismatch"),
                     nvidia__nvml="lib-rm-version-mismatch", nvidia__driver__version="550.54.15",
                     nvidia__driver__source="/proc/driver/nvidia/version",
                     nvidia__host__nvml=library("libnvidia-ml", "550.90.07"),
                     nvidia__host__libcuda=library("libcuda", "550.90.07"))  # fmt: skip
    blind = having(in_container(machine(1)), nvidia__gpus=Missing(reason="a driver is loaded, its library cannot be"),
                   nvidia__devices=(), nvidia__library=False, nvidia__nvml="no-library", nvidia__host__nvml=None,
                   nvidia__host__libcuda=None, toolchain__libcuda=None, toolchain__libcuda_for_linking=None,
                   nvidia__host__num_caps=0, nvidia__host__num_char_links=0)  # fmt: skip
    gh200 = having(with_gpu("NVIDIA GH200 480GB", (9, 0), 95, "580.95.05"), system__arch="aarch64")
    no_runtime = parts.docker(runtimes=("io.containerd.runc.v2", "runc"))
    return {
        "h100": ("a sound machine with one H100", machine(1), []),
        "h100_x8": ("a sound DGX-like machine: eight H100 behind NVSwitch", switched, []),
        "h100_x8_no_fabric_manager": ("the same, its fabric manager not running",
            having(switched, nvidia__host__fabric_manager=False, nvidia__gpus=tuple(
                gpu(i, fabric=Fabric(state="not-started", status=0, faults=())) for i in range(8))),
            ["fabric-manager-not-running"]),
        "a100_old_driver": ("an A100 under driver 470, torch 2.6.0+cu124 installed",
            having(with_gpu("NVIDIA A100-SXM4-80GB", (8, 0), 80, "470.82.01"), python__torch=CU124), ["driver-too-old"]),
        "rtx5090_with_2_6": ("Blackwell under torch 2.6.0, which has no code for it",
            having(with_gpu("NVIDIA GeForce RTX 5090", (12, 0), 31.8, "580.95.05", ecc=None), python__torch=CU124),
            ["arch-newer-than-wheel"]),
        "rtx3090": ("a sound desktop", with_gpu("NVIDIA GeForce RTX 3090", (8, 6), 24, "560.35.05", ecc=None, mig=None), []),
        "v100": ("a sound V100", having(with_gpu("Tesla V100-SXM2-32GB", (7, 0), 32, mig=None), python__torch=CU124), []),
        "v100_cu130": ("a V100 under a CUDA 13 build, which has no code for it",
            having(with_gpu("Tesla V100-SXM2-32GB", (7, 0), 32, "580.95.05", mig=None),
                   python__torch=TorchBuild(version="2.11.0+cu130", cuda="13.0")), ["arch-dropped-from-wheel"]),
        "gtx1080ti": ("a sound old desktop", with_gpu(ti, (6, 1), 11, mig=None, ecc=None), []),
        "k80": ("a Kepler card, whose last driver is too old for every CUDA 12 build",
            having(with_gpu("Tesla K80", (3, 7), 11.4, "470.256.02", mig=None), python__torch=CU124),
            ["driver-too-old", "arch-dropped-from-wheel"]),
        "t4_cloud": ("a sound cloud machine with one T4",
            having(with_gpu(t4, (7, 5), 15, mig=None), surroundings=parts.surroundings(virtual_machine=True)), []),
        "mig_slice": ("an A100 split in two slices",
            with_gpu("NVIDIA A100-SXM4-80GB", (8, 0), 80, mig=mig), []),
        "mig_without_slices": ("an A100 in MIG mode that nobody split",
            with_gpu("NVIDIA A100-SXM4-80GB", (8, 0), 80, mig=Mig(enabled=True, pending=True, num_instances=0)),
            ["mig-no-instances"]),
        "wsl2": ("a sound Windows machine, seen from inside WSL 2", wsl, []),
        "laptop_nouveau": ("a laptop with NVIDIA's driver installed, whose GPU nouveau holds",
            having(no_driver(machine(1), "nouveau", "vga"), nvidia__host__nvml=library("libnvidia-ml"),
                   nvidia__library=True, nvidia__nvml="driver-not-loaded", nvidia__host__libcuda=library("libcuda"),
                   nvidia__host__kernels=(Kernel(release="6.1.0", running=True, module="nvidia.ko", signed=True),)),
            ["gpu-bound-to-other-driver"]),
        "no_driver": ("a server whose GPU nobody installed a driver for", no_driver(machine(1), None), ["host-driver-missing"]),
        "driver_updated_no_reboot": ("the driver was updated, the machine not restarted", updated, ["driver-versions-mixed"]),
        "docker_without_gpus": ("a container started without --gpus on a GPU machine", blind, ["gpu-not-passed-to-container"]),
        "docker_small_shm": ("a container with Docker's default /dev/shm of 64 MB",
            having(in_container(machine(1)), storage__shm=shm), ["shm-too-small"]),
        "kubernetes": ("a sound pod with one GPU",
            having(in_container(machine(1), "KUBERNETES_SERVICE_HOST"), surroundings=parts.surroundings(container="kubernetes")), []),
        "gh200_arm": ("a sound Grace Hopper", gh200, []),
        "cpu_server": ("a sound server without any GPU", no_gpu(machine(1)), []),
        "docker_without_toolkit": ("a GPU machine whose Docker has no NVIDIA runtime",
            having(machine(1), engines=parts.engines(docker=no_runtime, toolkit=None, cdi=())), ["container-toolkit-missing"]),
        "rootless_podman_stale_cdi": ("rootless Podman with a CDI specification of the driver before",
            having(machine(1), engines=parts.engines(docker=None, podman=parts.podman(), cdi=(parts.spec(driver="535.104.05"),))),
            ["cdi-spec-stale"]),
        "snap_docker": ("Docker as a snap, which cannot reach NVIDIA's tools",
            having(machine(1), engines=parts.engines(docker=parts.docker(snap=True, runtimes=("runc",)), toolkit=None, cdi=())),
            ["docker-snap-confined"]),
        "docker_desktop": ("Docker Desktop for Linux, whose virtual machine has no GPU",
            having(machine(1), engines=parts.engines(docker=parts.docker(desktop=True, context="desktop-linux", runtimes=("runc",)))),
            ["docker-desktop-vm"]),
        "hot_gpu": ("a GPU that is slowed down by heat",
            having(machine(1), nvidia__gpus=(gpu(clocks=hot, temperature_c=92),)), ["gpu-thermal-throttle"]),
        "ecc_fault": ("a GPU with uncorrected memory errors",
            having(machine(1), nvidia__gpus=(gpu(ecc=bad_ecc),)), ["gpu-ecc-fault"]),
        "lost_gpu": ("one of two GPUs fell off the bus",
            having(machine(2), nvidia__gpus=(h100_0, lost), nvidia__host__xids=(Xid(number=79, pci="0000:11:00.0", count=1),)),
            ["gpu-off-bus"]),
        "busy_gpu": ("a GPU whose memory somebody else holds",
            having(machine(1), nvidia__gpus=(gpu(memory_used_bytes=70 * GB, processes=Processes(num=1, memory_bytes=69 * GB)),)),
            ["gpu-memory-held-by-other-process"]),
        "cpu_wheel": ("a CPU build of torch on a GPU machine",
            having(machine(1), python__torch=TorchBuild(version="2.6.0+cpu", cuda=None)), ["wheel-cpu-only"]),
        "cudnn_shadowed": ("a cuDNN in LD_LIBRARY_PATH in front of torch's own",
            having(machine(1), python__torch=shadowed()), ["cudnn-shadowed"]),
        "cudnn_drifted": ("a cuDNN wheel that somebody upgraded beneath torch", having(machine(1), python__torch=drifted()),
            ["cuda-wheels-mixed"]),
        "torchvision_unpaired": ("torchvision of another torch", having(machine(1), python__torch=unpaired()),
            ["torchvision-mismatch"]),
        "slim_image": ("a slim image without compiler and Python headers",
            having(in_container(machine(1)), toolchain__c=None, toolchain__cxx=None, python__headers=None),
            ["compile-no-c-compiler", "compile-no-python-headers"]),
        "full_disk": ("a disk with 1 GB left", having(machine(1), storage__data__free_bytes=GB), ["disk-full"]),
    }  # fmt: skip


def main() -> None:
    """Write every machine."""
    for name, (about, facts, expected) in hosts().items():
        document = {"about": f"made by hand: {about}", "expected_rules": expected, **json.loads(encode_facts(facts))}
        (HERE / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
