"""What kernel, bus and files show of NVIDIA, on trees of files that stand for other machines, sound and garbled."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_hosts import changed, h100
from simulated_nvml.tree import RUNNING, Tree, sound

from torchdeck.machine.facts import Missing, Nvidia
from torchdeck.machine.facts.nvidia import DriverLibrary, Kernel, NvidiaHost, PciDevice, Xid
from torchdeck.machine.judge import judge
from torchdeck.machine.probes import nvidia_host, nvml
from torchdeck.machine.probes.nvidia_host import gather_nvidia_host, gather_secure_boot, parse_xids
from torchdeck.machine.probes.pci import gather_pci
from torchdeck.machine.probes.shared_libraries import find_library

NEWER, OLDER = "6.1.0-21-amd64", "6.1.0-9-amd64"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def host(tree: Tree, search: str = "") -> NvidiaHost:
    return gather_nvidia_host(
        tree.root, gather_pci(tree.root / "sys/bus/pci/devices"), search, lambda: Missing(reason="not root")
    )


def nvidia(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Nvidia:
    """Gather from a tree on which no library can be loaded."""
    monkeypatch.setattr(nvml, "_can_load", lambda: False)
    monkeypatch.setattr(nvidia_host, "read_kernel_log", lambda: Missing(reason="not root"))
    monkeypatch.setattr(nvml, "_ROOT", tree.root)
    monkeypatch.setattr(nvml, "_PCI", tree.root / "sys/bus/pci/devices")
    monkeypatch.setattr(nvml, "_PROC", tree.root / "proc/driver/nvidia/version")
    monkeypatch.setattr(nvml, "_DEV", tree.root / "dev")
    return nvml.gather_nvidia()


def rules(found: Nvidia, container: str = "", **variables: str) -> list[str]:
    facts: Any = changed(changed(h100(), "nvidia", found), "system.container", container)
    return [finding.rule for finding in judge(changed(facts, "variables", variables))]


def test_the_bus_names_display_controllers_of_all_makers_and_nvidias_switches(tree: Tree) -> None:
    tree.pci(1, "nvidia").pci(2, None, kind="030000").pci(3, "i915", vendor="8086", kind="030000")
    tree.pci(4, "snd_hda_intel", kind="040300").switches(1).pci(5, None, vendor="8086", kind="068000")
    assert host(tree).pci == (
        PciDevice(address="0000:01:00.0", vendor="10de", device="2330", kind="3d", driver="nvidia"),
        PciDevice(address="0000:02:00.0", vendor="10de", device="2330", kind="vga", driver=None),
        PciDevice(address="0000:03:00.0", vendor="8086", device="2330", kind="vga", driver="i915"),
        PciDevice(address="0000:50:00.0", vendor="10de", device="2330", kind="nvswitch", driver="nvidia-nvswitch"),
    )


@pytest.mark.parametrize(
    "module",
    [
        "updates/dkms/nvidia.ko", "updates/dkms/nvidia-current.ko", "kernel/drivers/video/nvidia.ko.zst",
        "kernel/nvidia-550/nvidia.ko", "extra/nvidia/nvidia.ko.xz", "updates/dkms/nvidia-tesla-470.ko",
        "updates/dkms/nvidia-current-open.ko", "updates/dkms/nvidia-legacy-390xx.ko",
    ],
)  # fmt: skip
def test_the_module_is_found_under_the_names_of_each_distribution(tree: Tree, module: str) -> None:
    tree.kernel(module=module)
    signed: bool | Missing = Missing(reason="the module's file is compressed") if not module.endswith("ko") else False
    assert host(tree).kernels == (Kernel(release=RUNNING, running=True, module=module, signed=signed),)


def test_companions_and_namesakes_of_the_module_are_not_taken_for_it(tree: Tree) -> None:
    tree.kernel(module=None)
    tree.write(
        f"lib/modules/{RUNNING}/modules.dep",
        "updates/dkms/nvidia-uvm.ko: x\nupdates/dkms/nvidia-current-drm.ko: x\nkernel/i2c-nvidia-gpu.ko:\n"
        "updates/nvidia-current-modeset.ko: x\nextra/nvidia-peermem.ko:\nkernel/nvidiafb.ko: updates/nvidia.ko\n",
    )
    assert host(tree).kernels == (Kernel(release=RUNNING, running=True, module=None, signed=None),)


def test_a_signature_at_the_end_of_the_module_is_seen_and_removed_kernels_are_left_out(tree: Tree) -> None:
    tree.kernel(tail=b"~Module signature appended~\n").write("lib/modules/5.10.0-8-amd64/modules.dep", "")
    (kernel,) = host(tree).kernels  # type: ignore[misc]
    assert isinstance(kernel, Kernel)
    assert kernel.signed is True


def test_secure_boot_is_read_from_the_firmware_or_not_known_or_not_there(tmp_path: Path) -> None:
    assert gather_secure_boot(tmp_path) is None
    assert gather_secure_boot(Tree(tmp_path / "on").efi(secure=True).root) is True
    assert gather_secure_boot(Tree(tmp_path / "off").efi(secure=False).root) is False
    (tmp_path / "bare/sys/firmware/efi").mkdir(parents=True)
    assert isinstance(gather_secure_boot(tmp_path / "bare"), Missing)


def test_a_library_is_found_as_the_loader_finds_it(tree: Tree) -> None:
    tree.library(version="535.104.05").library("libcuda", folder="opt/cuda/compat", version="560.35.05")
    assert find_library("libnvidia-ml.so.1", tree.root, "") == DriverLibrary(
        path="/usr/lib/x86/libnvidia-ml.so.535.104.05", version="535.104.05"
    )
    tree.library(version="550.54.15", folder="home/own")
    found = find_library("libnvidia-ml.so.1", tree.root, "/nowhere:/home/own")
    assert found is not None
    assert found.version == "550.54.15"
    assert find_library("libcudart.so.12", tree.root, "") is None


def test_links_are_followed_through_absolute_targets_and_circles_end(tree: Tree) -> None:
    tree.write("opt/libcuda.so.550.54.15", b"\x7fELF\x02")
    (tree.root / "usr/lib").mkdir(parents=True)
    (tree.root / "usr/lib/libcuda.so.1").symlink_to("/opt/libcuda.so.550.54.15")
    (tree.root / "usr/lib/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.1")
    found = find_library("libcuda.so.1", tree.root, "")
    assert found is not None
    assert found.path == "/opt/libcuda.so.550.54.15"
    assert find_library("libnvidia-ml.so.1", tree.root, "") is None


def test_xids_are_counted_and_no_name_of_a_process_is_kept() -> None:
    log = (
        "[1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=secret, GPU has fallen off the bus.\n"
        "[2] NVRM: Xid (PCI:00000000:3B:00.0): 79, pid='<unknown>'\n[3] NVRM: Xid (PCI:0000:af:00): 13, Graphics\n"
    )
    assert parse_xids(log) == (Xid(number=79, pci="0000:3b:00", count=2), Xid(number=13, pci="0000:af:00", count=1))


def test_the_fabric_manager_is_looked_for_only_where_there_is_something_to_manage(tmp_path: Path) -> None:
    assert host(Tree(tmp_path / "a").gpus(1)).fabric_manager is None
    assert host(Tree(tmp_path / "b").gpus(2).switches()).fabric_manager is False
    assert host(Tree(tmp_path / "c").gpus(2).switches().process(9, "nv-fabricmanager")).fabric_manager is True
    hidden = Tree(tmp_path / "d").gpus(2).switches()
    shutil.rmtree(hidden.root / "proc/1")
    assert isinstance(host(hidden).fabric_manager, Missing)


def test_device_files_links_and_rights_are_counted(tree: Tree) -> None:
    tree.devices("nvidia0", "nvidia-caps/nvidia-cap1", "nvidia-caps/nvidia-cap2")
    (tree.root / "dev/char").mkdir()
    (tree.root / "dev/char/195:0").symlink_to("../nvidia0")
    (tree.root / "dev/char/1:3").symlink_to("../null")
    found = host(tree)
    assert (found.num_caps, found.num_char_links, found.denied) == (2, 1, ())
    if os.geteuid() != 0:
        (tree.root / "dev/nvidia0").chmod(0)
        assert host(tree).denied == ("/dev/nvidia0",)


def idle(tree: Tree) -> Tree:
    """A machine whose driver is installed and not loaded."""
    return tree.gpus(1, driver=None).library()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda tree: tree.gpus(1, None).kernel(module=None), "host-driver-missing"),
        (lambda tree: tree.gpus(1, "nouveau").kernel(module=None), "host-driver-missing"),
        (lambda tree: idle(tree).kernel(module=None).kernel(OLDER), "kernel-module-not-built"),
        (lambda tree: idle(tree).kernel(module=None), "kernel-module-not-built"),
        (lambda tree: tree.gpus(1, "nouveau").library().kernel(), "gpu-bound-to-other-driver"),
        (lambda tree: tree.gpus(1, "nova_core").library().kernel(), "gpu-bound-to-other-driver"),
        (lambda tree: tree.gpus(2, "vfio-pci").library().kernel().efi(secure=True), "gpu-bound-to-other-driver"),
        (lambda tree: idle(tree).kernel().efi(secure=True), "secure-boot-blocks-module"),
        (lambda tree: idle(tree).kernel().efi(secure=False), "host-driver-missing"),
        (lambda tree: idle(tree).kernel(), "host-driver-missing"),
        (lambda tree: tree.gpus(1).driver().kernel(), "host-driver-missing"),
    ],
)
def test_each_reason_why_no_driver_is_loaded_is_told_apart(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, make: Any, rule: str
) -> None:
    found = nvidia(make(tree), monkeypatch)
    assert rules(found) == [rule]
    facts = changed(h100(), "nvidia", found)
    (finding,) = judge(facts)
    assert finding.mend
    assert finding.evidence


def test_a_laptops_choice_of_the_other_gpu_comes_before_all_other_reasons(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle(tree).kernel(module=None).write("etc/prime-discrete", "intel\n")
    assert rules(nvidia(tree, monkeypatch)) == ["prime-gpu-off"]


def test_no_nvidia_gpu_gives_no_finding_whatever_else_is_there(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.pci(1, "nouveau", vendor="8086").library().kernel(module=None).efi(secure=True).write(
        "etc/prime-discrete", "intel"
    )
    assert rules(nvidia(tree, monkeypatch), CUDA_VISIBLE_DEVICES="7") == []


def test_in_a_container_the_bus_says_whether_the_host_has_a_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has, lacks = Tree(tmp_path / "has").gpus(1), Tree(tmp_path / "lacks").gpus(1, "nouveau")
    assert rules(nvidia(has, monkeypatch), "/.dockerenv") == ["gpu-not-passed-to-container"]
    assert rules(nvidia(lacks, monkeypatch), "/.dockerenv") == ["host-driver-missing"]


def test_device_files_without_libraries_in_a_container_are_told_from_a_narrow_variable(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = nvidia(tree.driver().gpus(1).devices("nvidia0", "nvidiactl", "nvidia-uvm"), monkeypatch)
    assert rules(found, "/.dockerenv") == ["gpu-not-passed-to-container"]
    assert rules(found, "/.dockerenv", NVIDIA_DRIVER_CAPABILITIES="compute") == ["nvidia-env-incomplete"]


def test_a_sound_tree_is_read_without_anything_missing_but_the_log(tmp_path: Path) -> None:
    found = host(sound(tmp_path).efi(secure=False))
    missing = [name for name in found.__struct_fields__ if isinstance(getattr(found, name), Missing)]
    assert missing == ["xids"]
    assert found.modules == ("nvidia", "nvidia_uvm")


_FILES = [
    "proc/modules", "proc/driver/nvidia/version", "proc/1/comm", "sys/bus/pci/devices/0000:10:00.0/class",
    "sys/bus/pci/devices/0000:10:00.0/vendor", f"lib/modules/{RUNNING}/modules.dep", "etc/ld.so.cache",
    "etc/prime-discrete", "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
    "usr/lib/x86/libcuda.so.1", "dev/nvidia0", f"lib/modules/{RUNNING}/updates/dkms/nvidia.ko",
]  # fmt: skip
_DAMAGE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(["gone", "folder", "circle", "dangling"]),
    st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


def damage(file: Path, how: bytes | str) -> None:
    if file.is_symlink() or file.is_file():
        file.unlink()
    elif file.is_dir():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    if how == "folder":
        file.mkdir()
    elif how == "circle":
        file.symlink_to(file.name)
    elif how == "dangling":
        file.symlink_to("/nonexistent/target")
    elif isinstance(how, bytes):
        file.write_bytes(how)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.sampled_from(_FILES), _DAMAGE, max_size=4), st.text(max_size=60), st.text(max_size=200))
def test_no_damage_to_the_files_makes_a_probe_or_a_rule_fail(
    tmp_path_factory: pytest.TempPathFactory, damages: dict[str, bytes | str], search: str, log: str
) -> None:
    root = tmp_path_factory.mktemp("tree")
    tree = sound(root, 2).switches().efi(secure=True)
    for name, how in damages.items():
        damage(root / name, how)
    pci = gather_pci(root / "sys/bus/pci/devices")
    found = gather_nvidia_host(root, pci, search, lambda: log)
    with pytest.MonkeyPatch.context() as patch:
        whole = nvidia(tree, patch)
    assert not isinstance(whole.host, Missing)
    for container in ("", "/.dockerenv"):
        rules(changed(whole, "host", found), container)
    shutil.rmtree(root)
