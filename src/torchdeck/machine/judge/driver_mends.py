"""The commands about the driver that differ from one distribution to the next."""

from __future__ import annotations

from torchdeck.machine.facts import Facts, Missing

_INSTALL = {
    "ubuntu": "sudo ubuntu-drivers install",
    "debian": "sudo apt-get install nvidia-driver  (section non-free)",
    "fedora": "sudo dnf install akmod-nvidia  (from RPM Fusion)",
    "arch": "sudo pacman -S nvidia-open",
}
_INSTALL_ANY = "install NVIDIA's driver from your distribution"
# {kernel} is the release that lacks the module.
_BUILD = {
    "ubuntu": ("sudo apt-get install linux-headers-{kernel}", "sudo dkms autoinstall -k {kernel}"),
    "debian": ("sudo apt-get install linux-headers-{kernel}", "sudo dkms autoinstall -k {kernel}"),
    "fedora": ("sudo dnf install kernel-devel-{kernel}", "sudo akmods --force --kernels {kernel}"),
    "rhel": ("sudo dnf install kernel-devel-{kernel}", "sudo dkms autoinstall -k {kernel}"),
    "arch": ("sudo pacman -S linux-headers nvidia-open-dkms",),
}
_BUILD_ANY = ("install the headers of kernel {kernel}", "sudo dkms autoinstall -k {kernel}")
_INITRAMFS = {
    "ubuntu": "sudo update-initramfs -u",
    "debian": "sudo update-initramfs -u",
    "fedora": "sudo dracut --force",
    "rhel": "sudo dracut --force",
    "arch": "sudo mkinitcpio -P",
}
_INITRAMFS_ANY = "rebuild the initramfs with the distribution's tool"
# Where each distribution keeps the public half of the key with which it signs modules that it builds.
_KEY = {
    "ubuntu": "/var/lib/shim-signed/mok/MOK.der",
    "fedora": "/etc/pki/akmods/certs/public_key.der",
}
_KEY_ANY = "/var/lib/dkms/mok.pub"


def distribution(facts: Facts) -> str:
    """Return the distribution's id; empty where it is not known."""
    if isinstance(facts.system, Missing) or isinstance(facts.system.distribution, Missing):
        return ""
    return facts.system.distribution


def install_driver(facts: Facts) -> str:
    """Return the command that installs the driver."""
    return _INSTALL.get(distribution(facts), _INSTALL_ANY)


def build_module(facts: Facts, kernel: str) -> tuple[str, ...]:
    """Return the commands that build the module for a kernel."""
    return tuple(text.format(kernel=kernel) for text in _BUILD.get(distribution(facts), _BUILD_ANY))


def blacklist(facts: Facts, module: str) -> tuple[str, ...]:
    """Return the commands that keep an in-tree driver from taking the GPU at the next start."""
    file = f"/etc/modprobe.d/blacklist-{module.replace('_', '-')}.conf"
    return (
        f"printf 'blacklist {module}\\noptions {module} modeset=0\\n' | sudo tee {file}"
        if module == "nouveau"
        else f"echo 'blacklist {module}' | sudo tee {file}",
        _INITRAMFS.get(distribution(facts), _INITRAMFS_ANY),
        "sudo reboot",
    )


def enrol_key(facts: Facts) -> tuple[str, ...]:
    """Return the commands that make the firmware trust the key of this machine's own modules."""
    key = _KEY.get(distribution(facts), _KEY_ANY)
    return f"sudo mokutil --import {key}", "sudo reboot  (and choose Enroll MOK on the blue screen)"
