"""The kernel's side of the driver: is the module built, may it be loaded, who holds the GPU instead."""

from __future__ import annotations

import re

from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.facts.nvidia import Kernel, NvidiaHost, PciDevice
from torchdeck.machine.judge.driver_mends import blacklist, build_module, enrol_key
from torchdeck.machine.records import Finding

_NVIDIA = "10de"
# In the kernel's own tree; each of them drives a GPU, but none of them runs CUDA.
_IN_TREE = ("nouveau", "nova_core", "nvidiafb")
# They keep a GPU free for a virtual machine.
_FOR_GUESTS = ("vfio-pci", "pci-stub", "xen-pciback")


def judge_idle_driver(facts: Facts, host: NvidiaHost) -> list[Finding]:
    """Say why an installed driver is not loaded; nothing where none is installed.

    The order is that of the causes: a laptop's choice, no module for this kernel, another driver that holds the GPU,
    a firmware that refuses the module.
    """
    if not _installed(host):
        return []
    if host.prime == "intel":
        return [_prime_off()]
    running = _running(host)
    if running is not None and running.module is None:
        return [_not_built(facts, running, now=True)]
    held = judge_other_driver(facts, host)
    if held:
        return held
    if running is not None and host.secure_boot is True:
        return [_refused(facts, running)]
    return [_not_loaded(running)]


def _kernels(host: NvidiaHost) -> tuple[Kernel, ...]:
    return () if isinstance(host.kernels, Missing) else host.kernels


def _running(host: NvidiaHost) -> Kernel | None:
    return next((kernel for kernel in _kernels(host) if kernel.running), None)


def _installed(host: NvidiaHost) -> bool:
    """Whether any part of a driver is on this machine."""
    library = host.libcuda if host.nvml is None else host.nvml
    return any(kernel.module for kernel in _kernels(host)) or not (library is None or isinstance(library, Missing))


def _prime_off() -> Finding:
    return Finding(
        rule="prime-gpu-off",
        severity="warning",
        title="the NVIDIA GPU is switched off by this laptop's PRIME profile",
        cause="The profile intel keeps NVIDIA's module from being loaded.",
        evidence=("intel, read from /etc/prime-discrete", "no /proc/driver/nvidia/version"),
        needs="the profile on-demand or nvidia",
        mend=("sudo prime-select on-demand", "sudo reboot"),
    )


def _not_built(facts: Facts, kernel: Kernel, *, now: bool) -> Finding:
    return Finding(
        rule="kernel-module-not-built",
        severity="error" if now else "warning",
        title=f"there is no NVIDIA module for the running kernel {kernel.release}"
        if now
        else f"after the next restart the NVIDIA driver will be gone: kernel {kernel.release} has no module",
        cause="A driver is installed, but its module was built for other kernels only, mostly for want of the "
        "headers of this one.",
        evidence=(f"no nvidia.ko in modules.dep of {kernel.release}",),
        needs=f"NVIDIA's module for {kernel.release}",
        mend=(*build_module(facts, kernel.release), "sudo modprobe nvidia" if now else "sudo reboot  (afterwards)"),
    )


def _refused(facts: Facts, kernel: Kernel) -> Finding:
    signed = "is signed" if kernel.signed is True else "is not signed"
    told = isinstance(kernel.signed, bool)
    return Finding(
        rule="secure-boot-blocks-module",
        severity="warning",
        title="Secure Boot is on, and NVIDIA's module is built but not loaded",
        cause="The firmware's rules admit a module only if the key that signed it was enrolled.",
        evidence=(
            "SecureBoot is 1 in the firmware's variables",
            f"{kernel.module} of {kernel.release} {signed}" if told else f"{kernel.module} of {kernel.release}",
            "no /proc/driver/nvidia/version",
        ),
        needs="a module signed with a key that the firmware knows, or Secure Boot switched off",
        mend=("sudo modprobe nvidia  (its error says for certain)", *enrol_key(facts)),
    )


def _not_loaded(kernel: Kernel | None) -> Finding:
    where = () if kernel is None else (f"{kernel.module} of {kernel.release}",)
    return Finding(
        rule="host-driver-missing",
        severity="warning",
        title="NVIDIA's driver is installed, but not loaded",
        cause="Without its module torch sees no GPU, and everything computes on the CPU.",
        evidence=(*where, "no /proc/driver/nvidia/version"),
        needs="a loaded NVIDIA driver",
        mend=("sudo modprobe nvidia", "sudo dmesg | grep -i nvidia  (why it was not loaded)"),
    )


def judge_other_driver(facts: Facts, host: NvidiaHost) -> list[Finding]:
    """Find GPUs that another driver than NVIDIA's holds."""
    if isinstance(host.pci, Missing):
        return []
    held: dict[str, list[PciDevice]] = {}
    for device in host.pci:
        if device.vendor == _NVIDIA and device.kind != "nvswitch" and device.driver in (*_IN_TREE, *_FOR_GUESTS):
            held.setdefault(str(device.driver), []).append(device)
    return [_held(facts, driver, devices) for driver, devices in held.items()]


def _held(facts: Facts, driver: str, devices: list[PciDevice]) -> Finding:
    for_guests = driver in _FOR_GUESTS
    free = tuple(
        f"echo {device.address} | sudo tee /sys/bus/pci/drivers/{driver}/unbind && echo {device.address} | sudo tee "
        "/sys/bus/pci/drivers_probe"
        for device in devices
    )
    return Finding(
        rule="gpu-bound-to-other-driver",
        severity="warning",
        title=f"{len(devices)} NVIDIA GPU(s) are held by {driver}, not by NVIDIA's driver",
        cause=f"{driver} keeps a GPU free for a virtual machine; torch on this machine cannot use it."
        if for_guests
        else f"{driver} was loaded first, often from the initramfs, and runs no CUDA.",
        evidence=tuple(f"{device.address}: driver {driver}, from /sys/bus/pci/devices" for device in devices),
        needs="the driver nvidia, unless the GPU is meant for a guest" if for_guests else "the driver nvidia",
        mend=(f"remove driver_override and the {driver} ids of these GPUs", *free)
        if for_guests
        else blacklist(facts, driver),
    )


def judge_next_kernel(facts: Facts, host: NvidiaHost) -> list[Finding]:
    """Find newer kernels, which the next restart would choose, without the module that the running one has.

    Older kernels stay for rescue, and nobody starts them to train.
    """
    running = _running(host)
    if running is None or not running.module:
        return []
    return [
        _not_built(facts, kernel, now=False)
        for kernel in _kernels(host)
        if kernel.module is None and _order(kernel.release) > _order(running.release)
    ]


def _order(release: str) -> tuple[tuple[int, str], ...]:
    """Return a key that puts 6.10.0 after 6.9.3."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", release) if part)
