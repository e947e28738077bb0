"""GPUs that are lost, ill, hot or held back by their power supply."""

from __future__ import annotations

from collections.abc import Iterator

from torchdeck.machine.facts import Facts, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import Ecc, NvidiaHost, Xid
from torchdeck.machine.judge.driver import host_of, in_container, in_job
from torchdeck.machine.judge.each_gpu import gone, indexes, named, unknowns, usable
from torchdeck.machine.records import Finding

_THERMAL = ("sw-thermal-slowdown", "hw-thermal-slowdown")
_BRAKE = "hw-power-brake-slowdown"
_SLOWDOWN = "hw-slowdown"
# NVIDIA's numbers: fallen off the bus; double-bit error, uncontained and contained uncorrectable error, row remapping
# failed.
_XID_OFF_BUS = (79,)
_XID_MEMORY = (48, 64, 94, 95)
_NOT_OURS = "no-permission"


def judge_lost(facts: Facts, nvidia: Nvidia) -> list[Finding]:
    """Find GPUs that the bus or the driver names, and that do not answer."""
    gpus = () if isinstance(nvidia.gpus, Missing) else nvidia.gpus
    findings = [
        _lost(gpu, _xids(nvidia, gpu.pci, _XID_OFF_BUS))
        for gpu in gpus
        if gpu.fault not in (None, _NOT_OURS, "reset-required")
    ]
    host = host_of(nvidia)
    if gpus and host is not None and not in_container(facts, if_unknown=True) and not in_job(facts):
        findings += _not_shown(gpus, host, nvidia)
    return findings


def _lost(gpu: Gpu, xids: tuple[str, ...]) -> Finding:
    power = gpu.fault == "insufficient-power"
    return Finding(
        rule="gpu-off-bus",
        severity="error",
        title=f"{named([gpu])} does not answer: {gpu.fault}",
        cause="Its external power is not connected, or too weak."
        if power
        else "The link to it broke, mostly through power, heat or a loose seat. Until it is back, every CUDA program "
        "that can see it may fail.",
        evidence=(f"NVML: {gpu.fault} for GPU {gpu.index}", *xids),
        needs="a GPU that answers",
        mend=(
            f"nvidia-smi -i {gpu.index} -q -d TEMPERATURE,POWER",
            "switch the machine off and on again, not only restart it",
            "CUDA_VISIBLE_DEVICES=…  (the other GPUs, until then)",
        ),
    )


def _not_shown(gpus: tuple[Gpu, ...], host: NvidiaHost, nvidia: Nvidia) -> list[Finding]:
    """Find GPUs that NVIDIA's driver holds and does not show; needs every shown GPU's address.

    Without a word in the kernel's log it stays open whether they failed or are kept for somebody else.
    """
    shown = {gpu.pci for gpu in gpus}
    if isinstance(host.pci, Missing) or any(isinstance(address, Missing) for address in shown):
        return []
    ours = (device for device in host.pci if device.vendor == "10de" and device.kind != "nvswitch")
    lacking = [device.address for device in ours if device.driver == "nvidia" and device.address not in shown]
    if not lacking:
        return []
    logged = tuple(text for address in lacking for text in _xids(nvidia, address, _XID_OFF_BUS))
    them = f"the GPU(s) at {', '.join(lacking)}"
    return [
        Finding(
            rule="gpu-off-bus",
            severity="error" if logged else "unknown",
            title=f"{them} fell off the bus" if logged else f"not known: why the driver does not show {them}",
            cause="The link to it broke, mostly through power, heat or a loose seat."
            if logged
            else "They failed when the driver addressed them, or a job scheduler keeps them for other jobs.",
            evidence=(f"held by the driver nvidia in /sys/bus/pci/devices, not among NVML's {len(gpus)}", *logged),
            needs="GPUs that answer",
            mend=("sudo dmesg | grep -E 'NVRM|Xid'", "switch the machine off and on again, not only restart it"),
        )
    ]


def _xids(nvidia: Nvidia, address: str | Missing, numbers: tuple[int, ...]) -> tuple[str, ...]:
    """Return what the kernel's log says of one GPU."""
    host = host_of(nvidia)
    if host is None or isinstance(host.xids, Missing) or isinstance(address, Missing):
        return ()
    return tuple(_told(xid) for xid in host.xids if xid.number in numbers and address.startswith(xid.pci))


def _told(xid: Xid) -> str:
    return f"Xid {xid.number} of {xid.pci}, {xid.count} times since the machine started (kernel log)"


def judge_memory_errors(nvidia: Nvidia) -> list[Finding]:
    """Find GPUs whose memory has errors beyond correction."""
    findings = []
    for gpu in () if isinstance(nvidia.gpus, Missing) else nvidia.gpus:
        xids = _xids(nvidia, gpu.pci, _XID_MEMORY)
        if gpu.fault == "reset-required":
            findings.append(_ill(gpu, "must be reset before anything can use it", ("NVML: reset-required", *xids)))
        elif gpu.fault is None and isinstance(gpu.ecc, Ecc):
            findings += _memory_errors(gpu, gpu.ecc, xids)
    return findings + unknowns(usable(nvidia), _ecc_gap, "gpu-ecc-fault", "whether the memory is sound of")


def _ecc_gap(gpu: Gpu) -> object:
    ecc = gpu.ecc
    if not isinstance(ecc, Ecc):
        return ecc
    values = (ecc.num_uncorrected_volatile, ecc.retirement_pending, ecc.remap_pending, ecc.remap_failed)
    return next((value for value in values if gone(value)), None)


def _memory_errors(gpu: Gpu, ecc: Ecc, xids: tuple[str, ...]) -> Iterator[Finding]:
    num = ecc.num_uncorrected_volatile
    counted = (f"{num} uncorrected errors since the driver was loaded",) if isinstance(num, int) and num else ()
    if ecc.remap_failed is True:
        told = ("NVML: a row could not be replaced", *counted, *xids)
        yield Finding(
            rule="gpu-ecc-fault",
            severity="error",
            title=f"the memory of {named([gpu])} is damaged beyond repair",
            cause="A faulty row could not be replaced by a spare one.",
            evidence=told,
            needs="another board",
            mend=(f"nvidia-smi -i {gpu.index} -q -d ROW_REMAPPER,ECC  (for the maker's warranty)",),
        )
    elif ecc.remap_pending is True or ecc.retirement_pending is True:
        told = ("NVML: a repair waits for a reset", *counted, *xids)
        yield _ill(gpu, "has memory errors, whose repair waits for a reset", told)
    elif counted:
        yield _ill(gpu, f"has had {num} memory errors beyond correction", (*counted, *xids), severity="warning")


def _ill(gpu: Gpu, what: str, evidence: tuple[str, ...], severity: str = "error") -> Finding:
    return Finding(
        rule="gpu-ecc-fault",
        severity="warning" if severity == "warning" else "error",
        title=f"{named([gpu])} {what}",
        cause="Each such error ends the programs that touch the place; a reset takes faulty rows out of use.",
        evidence=evidence,
        needs="no uncorrected errors",
        mend=(
            f"sudo nvidia-smi --gpu-reset -i {gpu.index}  (nothing may use the GPU)",
            f"nvidia-smi -i {gpu.index} -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
        ),
    )


def judge_throttling(nvidia: Nvidia) -> list[Finding]:
    """Find GPUs whose clocks are held down by heat or by the power supply."""
    gpus = usable(nvidia)
    hot = [gpu for gpu in gpus if set(_THERMAL) & set(_reasons(gpu))]
    braked = [
        gpu for gpu in gpus if gpu not in hot and {_BRAKE, _SLOWDOWN} & set(_reasons(gpu))
    ]  # hardware slows down for heat too, and then says both
    findings = []
    if hot:
        findings.append(_hot(hot))
    braked += [gpu for gpu in hot if _BRAKE in _reasons(gpu)]
    if braked:
        findings.append(_braked(sorted(braked, key=lambda gpu: gpu.index)))
    return findings + unknowns(gpus, _reasons_or_gap, "gpu-thermal-throttle", "whether heat or power holds back")


def _reasons_or_gap(gpu: Gpu) -> object:
    return gpu.clocks if gpu.clocks is None or isinstance(gpu.clocks, Missing) else gpu.clocks.reasons


def _reasons(gpu: Gpu) -> tuple[str, ...]:
    found = _reasons_or_gap(gpu)
    return found if isinstance(found, tuple) else ()


def _shown(gpu: Gpu) -> str:
    """Return what is known of a GPU's state, as evidence."""
    parts = [", ".join(_reasons(gpu))]
    if isinstance(gpu.temperature_c, int):
        parts.append(f"{gpu.temperature_c} °C")
    if gpu.clocks is not None and not isinstance(gpu.clocks, Missing):
        now, most = gpu.clocks.sm_mhz, gpu.clocks.sm_max_mhz
        if isinstance(now, int) and isinstance(most, int):
            parts.append(f"{now} of {most} MHz")
    if isinstance(gpu.power_watts, (int, float)) and isinstance(gpu.power_limit_watts, (int, float)):
        parts.append(f"{gpu.power_watts:g} of {gpu.power_limit_watts:g} W")
    return f"GPU {gpu.index}: {'; '.join(parts)} (NVML)"


def _hot(gpus: list[Gpu]) -> Finding:
    return Finding(
        rule="gpu-thermal-throttle",
        severity="warning",
        title=f"{named(gpus)} lowers its clocks because it is hot"
        if len(gpus) == 1
        else f"{named(gpus)} lower their clocks because they are hot",
        cause="The driver lowers the clocks until the temperature falls; training is slower by as much.",
        evidence=tuple(_shown(gpu) for gpu in gpus),
        needs="cooling: clean filters, free air ways, working fans, a cooler room",
        mend=(
            f"nvidia-smi -i {indexes(gpus)} -q -d TEMPERATURE",
            f"sudo nvidia-smi -i {indexes(gpus)} -pl WATTS  (a lower limit costs less than throttling)",
        ),
    )


def _braked(gpus: list[Gpu]) -> Finding:
    return Finding(
        rule="gpu-power-brake",
        severity="warning",
        title=f"{named(gpus)}: the hardware holds the clocks down",
        cause="Power supply, chassis or board asserts its brake; the clocks fall to a half or less.",
        evidence=tuple(_shown(gpu) for gpu in gpus),
        needs="enough power: all cables, all power supplies, the chassis' power limit",
        mend=(f"nvidia-smi -i {indexes(gpus)} -q -d PERFORMANCE,POWER", "sudo ipmitool sdr type 'Power Supply'"),
    )
