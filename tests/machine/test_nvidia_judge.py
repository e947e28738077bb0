"""The rules about driver and GPUs, and the law that a fact that was looked for and not found is never fine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_hosts import changed, h100

from torchdeck.machine.facts import Facts, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import (
    Clocks,
    DriverLibrary,
    Ecc,
    Fabric,
    Kernel,
    Mig,
    NvidiaHost,
    PciDevice,
    PcieLink,
    Processes,
)
from torchdeck.machine.judge import Policy, judge, judge_for_build
from torchdeck.machine.judge.gpu import judge_nvidia
from torchdeck.machine.records import Finding

GONE = Missing(reason="the probe was ended")
SOUND = Ecc(enabled=True, num_uncorrected_volatile=0, num_uncorrected_aggregate=0, retirement_pending=None,
            remap_pending=False, remap_failed=False)  # fmt: skip


def gpu(index: int = 0, **changes: Any) -> Gpu:
    values: dict[str, Any] = {
        "index": index, "name": "NVIDIA H100 80GB HBM3", "cc": (9, 0), "memory_bytes": 85_520_809_984,
        "pci": f"0000:{0x10 + index:02x}:00.0", "memory_used_bytes": 577_000_000, "persistence": True,
        "compute_mode": "default", "mig": Mig(enabled=False, pending=False, num_instances=0), "ecc": SOUND,
        "clocks": Clocks(sm_mhz=1980, sm_max_mhz=1980, reasons=("gpu-idle",)), "temperature_c": 31,
        "power_watts": 70.0, "power_limit_watts": 700.0,
        "pcie": PcieLink(generation=5, width=16, generation_max=5, width_max=16),
        "processes": Processes(num=0, memory_bytes=0), "fabric": None, "num_nvlinks": None,
    }  # fmt: skip
    return Gpu(**{**values, **changes})


def pci(index: int = 0, kind: str = "3d", driver: str | None = "nvidia") -> PciDevice:
    return PciDevice(address=f"0000:{0x10 + index:02x}:00.0", vendor="10de", device="2330", kind=kind, driver=driver)


def library(name: str, version: str = "550.54.15", folder: str = "/usr/lib") -> DriverLibrary:
    return DriverLibrary(path=f"{folder}/{name}.so.{version}", version=version)


def machine(num: int = 2) -> Facts:
    """A sound machine, gathered in full."""
    host = NvidiaHost(
        pci=tuple(pci(index) for index in range(num)), modules=("nvidia", "nvidia_uvm"),
        kernels=(Kernel(release="6.1.0", running=True, module="updates/dkms/nvidia.ko", signed=True),),
        secure_boot=False, nvml=library("libnvidia-ml"), libcuda=library("libcuda"), nvidia_modprobe=False,
        prime=None, fabric_manager=None, denied=(), num_caps=2, num_char_links=4, xids=(),
    )  # fmt: skip
    facts = changed(h100(), "nvidia.gpus", tuple(gpu(index) for index in range(num)))
    facts = changed(facts, "nvidia.devices", ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"))
    facts = changed(changed(facts, "nvidia.num_pci", num), "nvidia.nvml", "success")
    return changed(facts, "nvidia.host", host)  # type: ignore[no-any-return]


def container(facts: Facts) -> Facts:
    return changed(facts, "system.container", "/.dockerenv")  # type: ignore[no-any-return]


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def test_a_sound_machine_that_was_gathered_in_full_has_no_findings() -> None:
    assert judge(machine()) == []
    assert judge(container(machine())) == []
    assert judge_for_build(machine(), "2.6.0", "cu124", "pypi") == []


def test_a_file_of_an_older_torchdeck_lacks_the_later_facts_and_no_rule_speaks_on_them() -> None:
    document = msgspec.to_builtins(machine().nvidia)
    del document["host"], document["nvml"]
    for entry in document["gpus"]:
        for name in list(entry):
            if name not in ("fact", "index", "name", "cc", "memory_bytes"):
                del entry[name]
    older = msgspec.convert(document, Nvidia)
    assert judge(changed(machine(), "nvidia", older)) == []


def test_a_newer_kernel_without_the_module_is_a_warning_before_the_restart_and_an_older_one_is_not() -> None:
    for release, expected in (("6.1.10", ["kernel-module-not-built"]), ("6.0.9", []), ("5.10.0", [])):
        other = Kernel(release=release, running=False, module=None, signed=None)
        facts = machine()
        assert isinstance(facts.nvidia, Nvidia)
        assert isinstance(facts.nvidia.host, NvidiaHost)
        found = judge(changed(facts, "nvidia.host.kernels", (*facts.nvidia.host.kernels, other)))  # type: ignore[misc]
        assert rules(found) == expected
        assert {finding.severity for finding in found} <= {"warning"}


def test_one_gpu_of_several_that_is_kept_for_a_guest_is_named() -> None:
    facts = changed(machine(1), "nvidia.host.pci", (pci(0), pci(1, driver="vfio-pci")))
    (found,) = judge(facts)
    assert (found.rule, found.severity) == ("gpu-bound-to-other-driver", "warning")
    assert "0000:11:00.0" in found.evidence[0]


@pytest.mark.parametrize(
    ("value", "severity"),
    [("0,1", None), ("1", None), ("2", "error"), ("0,2", "warning"), ("0,1,7", "warning"), ("", "info"),
     ("-1", "info"), ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", None), ("0,-1", "warning"),
     ("99999999999999", "error"),
     ("MIG-GPU-x/1/0", None), ("٣", None), (" 0 , 1 ", None)],
)  # fmt: skip
def test_a_number_in_cuda_visible_devices_must_exist(value: str, severity: str | None) -> None:
    found = judge(changed(machine(), "variables", {"CUDA_VISIBLE_DEVICES": value}))
    assert rules(found) == (["visible-devices-wrong-index"] if severity else [])
    assert [finding.severity for finding in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("value", "severity"),
    [("compute,utility", None), ("all", None), ("", None), ("utility", "error"), ("graphics,video", "error"),
     ("compute", None), ("Compute , Utility", None)],
)  # fmt: skip
def test_a_container_must_ask_for_the_libraries_that_compute(value: str, severity: str | None) -> None:
    facts = changed(machine(), "variables", {"NVIDIA_DRIVER_CAPABILITIES": value})
    assert [finding.severity for finding in judge(container(facts))] == ([severity] if severity else [])
    assert judge(facts) == []


def test_a_container_without_libcuda_gets_one_finding_and_not_two() -> None:
    facts = container(changed(machine(), "nvidia.host.libcuda", None))
    assert rules(judge(facts)) == ["nvidia-env-incomplete"]
    assert rules(judge(changed(facts, "variables", {"NVIDIA_DRIVER_CAPABILITIES": "utility"}))) == [
        "nvidia-env-incomplete"
    ]


def test_a_forward_compatible_libcuda_is_wrong_on_a_consumer_card_only() -> None:
    facts = changed(machine(1), "nvidia.host.libcuda", library("libcuda", "560.35.05", "/usr/local/cuda/compat"))
    assert judge(facts) == []
    card = changed(facts, "nvidia.gpus", (gpu(name="NVIDIA GeForce RTX 4090", cc=(8, 9)),))
    (found,) = judge(card)
    assert (found.rule, found.severity) == ("cuda-compat-unsupported-gpu", "error")


def test_another_libcuda_than_the_drivers_is_the_images_own_in_a_container() -> None:
    facts = changed(machine(), "nvidia.host.libcuda", library("libcuda", "535.104.05"))
    assert rules(judge(facts)) == ["driver-versions-mixed"]
    assert rules(judge(container(facts))) == ["driver-libs-inside-container"]


def test_uvm_is_missed_only_where_nothing_would_make_it() -> None:
    facts = changed(machine(), "nvidia.devices", ("/dev/nvidia0", "/dev/nvidiactl"))
    assert [(found.rule, found.severity) for found in judge(facts)] == [("uvm-device-missing", "warning")]
    assert [(found.rule, found.severity) for found in judge(container(facts))] == [("uvm-device-missing", "error")]
    assert judge(changed(facts, "nvidia.host.nvidia_modprobe", True)) == []
    assert judge(changed(facts, "system.wsl", True)) == []


def test_switches_without_a_fabric_manager_are_an_error_for_gpus_that_do_not_tell_themselves() -> None:
    facts = changed(machine(), "nvidia.host.pci", (pci(0), pci(1), pci(0x40, "nvswitch", "nvidia-nvswitch")))
    facts = changed(facts, "nvidia.host.fabric_manager", False)
    (found,) = judge(facts)
    assert (found.rule, found.severity) == ("fabric-manager-not-running", "error")
    assert [finding.severity for finding in judge(container(facts))] == ["unknown"]
    assert judge(changed(facts, "nvidia.host.fabric_manager", True)) == []
    joined = tuple(gpu(index, fabric=Fabric(state="completed", status=0, faults=())) for index in range(2))
    assert judge(changed(facts, "nvidia.gpus", joined)) == []


def test_free_gpus_are_offered_beside_those_that_are_taken() -> None:
    taken = gpu(0, memory_used_bytes=60 * 2**30, processes=Processes(num=1, memory_bytes=59 * 2**30))
    facts = changed(machine(), "nvidia.gpus", (taken, gpu(1)))
    (found,) = judge(facts)
    assert found.rule == "gpu-memory-held-by-other-process"
    assert found.mend[0].startswith("CUDA_VISIBLE_DEVICES=1")
    assert judge_nvidia(facts, Policy(gpu_memory_held_frac=0.9)) == []


def test_a_gpu_that_is_too_old_for_every_build_is_said_once_and_is_an_error_only_if_no_other_is_there() -> None:
    old = gpu(0, name="Tesla K10", cc=(3, 0))
    (found,) = judge_for_build(changed(machine(1), "nvidia.gpus", (old,)), "2.6.0", "cu124", "pypi")
    assert (found.rule, found.severity) == ("arch-below-minimum", "error")
    (found,) = judge_for_build(changed(machine(), "nvidia.gpus", (old, gpu(1))), "2.6.0", "cu124", "pypi")
    assert (found.rule, found.severity) == ("arch-below-minimum", "warning")


def test_a_lost_gpu_is_said_once_and_not_as_unknown_as_well() -> None:
    names = "cc memory_bytes memory_used_bytes compute_mode mig ecc clocks processes fabric pci"
    dead = dict.fromkeys(names.split(), GONE)
    facts = changed(machine(), "nvidia.gpus", (gpu(0), gpu(1, fault="gpu-is-lost", **dead)))
    (found,) = judge_for_build(facts, "2.6.0", "cu124", "pypi")
    assert (found.rule, found.severity) == ("gpu-off-bus", "error")


def _paths(value: Any, prefix: str = "") -> list[str]:
    """Name every field that may be Missing, into records and the first of each list of GPUs."""
    found = []
    for field in msgspec.structs.fields(type(value)):
        path = f"{prefix}{field.encode_name}"
        if "Missing" in str(field.type):
            found.append(path)
        inner = getattr(value, field.encode_name)
        if isinstance(inner, msgspec.Struct) and not isinstance(inner, Missing):
            found += _paths(inner, f"{path}.")
    return found


# What no rule rests on by itself: shown, or told as evidence beside a rule's own facts.
_GPU_SHOWN = {
    "pci", "memory_bytes", "persistence", "temperature_c", "power_watts", "power_limit_watts", "processes",
    "num_nvlinks", "pcie", "pcie.generation", "pcie.width", "pcie.generation_max", "pcie.width_max", "ecc.enabled",
    "ecc.num_uncorrected_aggregate", "clocks.sm_mhz", "clocks.sm_max_mhz", "mig.num_instances",
}  # fmt: skip
# They matter only while no driver is loaded, or beside a switch.
_HOST_SHOWN = {
    "pci", "modules", "kernels", "secure_boot", "nvml", "nvml.version", "libcuda.version", "prime", "fabric_manager",
    "xids",
}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sets(st.sampled_from(sorted(_paths(gpu()))), max_size=4),
    st.sets(st.sampled_from(sorted(_paths(machine().nvidia.host))), max_size=3),  # type: ignore[union-attr]
)
def test_what_is_missing_never_turns_into_fine(of_gpu: set[str], of_host: set[str]) -> None:
    card: Any = gpu()
    for path in sorted(of_gpu, key=len, reverse=True):
        card = changed(card, path, GONE)
    facts: Any = changed(machine(), "nvidia.gpus", (card, gpu(1)))
    for path in sorted(of_host, key=len, reverse=True):
        facts = changed(facts, f"nvidia.host.{path}", GONE)
    found = judge_nvidia(facts)
    if of_gpu - _GPU_SHOWN or of_host - _HOST_SHOWN:
        assert found
    assert {finding.severity for finding in found} <= {"unknown"}


def test_where_no_driver_is_loaded_what_was_missed_makes_the_finding_weaker_but_not_absent() -> None:
    facts = changed(changed(machine(), "nvidia.driver", None), "nvidia.gpus", ())
    for path in ("kernels", "secure_boot", "nvml", "libcuda", "pci", "prime"):
        found = judge(changed(facts, f"nvidia.host.{path}", GONE))
        assert rules(found) == ["host-driver-missing"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=30))
def test_no_text_in_a_fact_file_makes_a_rule_fail(version: str, library_version: str, name: str, visible: str) -> None:
    card = gpu(0, name=name, fault=name or None, compute_mode=name, fabric=Fabric(state=name, status=3, faults=(name,)))
    facts = changed(changed(machine(), "nvidia.gpus", (card, gpu(1))), "nvidia.driver.version", version)
    facts = changed(facts, "nvidia.host.libcuda", library("libcuda", library_version, "/usr/compat"))
    facts = changed(facts, "nvidia.host.kernels", (
        Kernel(release=name, running=True, module=visible, signed=None),
        Kernel(release=visible, running=False, module=None, signed=None),
    ))  # fmt: skip
    facts = changed(facts, "variables", {"CUDA_VISIBLE_DEVICES": visible, "NVIDIA_DRIVER_CAPABILITIES": visible})
    for found in (facts, container(facts), changed(facts, "nvidia.driver", None)):
        judge_for_build(found, "2.6.0", "cu124", "pypi")
