"""One GPU through NVML: each value for itself, so that one that is refused costs no other.

NVML's *not supported*, and a function that an older driver lacks, become None; every other error ``Missing``. A GPU
that is lost says so once, in ``fault``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

from torchdeck.machine.facts import Gpu, Missing
from torchdeck.machine.facts.nvidia import Clocks, Ecc, Fabric, Mig, PcieLink, Processes

T = TypeVar("T")

_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
# In the order of NVML's bits.
_CLOCK_REASONS = (
    "gpu-idle",
    "applications-clocks-setting",
    "sw-power-cap",
    "hw-slowdown",
    "sync-boost",
    "sw-thermal-slowdown",
    "hw-thermal-slowdown",
    "hw-power-brake-slowdown",
    "display-clock-setting",
)
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
# Each fault has two bits of NVML's mask: 0 not supported, 1 true, 2 false.
_FABRIC_FAULTS = {"degraded-bandwidth": 0, "route-recovery": 2, "route-unhealthy": 4, "access-timeout-recovery": 6}
# Errors that are about the whole GPU.
_FAULTS = ("GPU_IS_LOST", "RESET_REQUIRED", "INSUFFICIENT_POWER", "IRQ_ISSUE", "CORRUPTED_INFOROM")
_NOT_FOUND = "FUNCTION_NOT_FOUND"
# NVML has no constant for them in every version of nvidia-ml-py.
_UNCORRECTED, _VOLATILE, _AGGREGATE = 1, 0, 1
_CLOCK_SM, _SENSOR_GPU = 1, 0
_MAX_NVLINKS = 36
_MAX_MIG = 64


def error_name(pynvml: Any, error: Any) -> str:
    """Return an NVML error's name as this project writes it: ``gpu-is-lost``."""
    for name in dir(pynvml):
        if name.startswith("NVML_ERROR_") and getattr(pynvml, name) == error.value:
            return name.removeprefix("NVML_ERROR_").lower().replace("_", "-")
    return f"error-{error.value}"


class GpuReader:
    """Asks NVML about one GPU.

    Args:
        pynvml: The module.
        index: The GPU's number.
    """

    def __init__(self, pynvml: Any, index: int) -> None:
        self._nvml = pynvml
        self._index = index
        self._handle: Any = None
        self._fault: str | None = None
        self._absent = tuple(
            getattr(pynvml, f"NVML_ERROR_{name}") for name in ("NOT_SUPPORTED", _NOT_FOUND, "VGPU_ECC_NOT_SUPPORTED")
        )
        self._fatal = tuple(getattr(pynvml, f"NVML_ERROR_{name}") for name in _FAULTS)

    def read(self) -> Gpu:
        """Return the GPU."""
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByIndex(self._index)
        except self._nvml.NVMLError as error:
            self._fault = error_name(self._nvml, error)
        name = self._ask("Name")
        memory = self._ask("MemoryInfo")
        return Gpu(
            index=self._index,
            name=_text(name) if isinstance(name, (str, bytes)) else "unknown",
            cc=_given(_map(self._ask("CudaComputeCapability"), lambda pair: (int(pair[0]), int(pair[1])))),
            memory_bytes=_given(_map(memory, lambda info: int(info.total))),
            pci=_given(_map(self._ask("PciInfo"), _pci_address)),
            memory_used_bytes=_map(memory, lambda info: int(info.used)),
            persistence=_map(self._ask("PersistenceMode"), bool),
            compute_mode=_map(self._ask("ComputeMode"), lambda number: _named(_COMPUTE_MODES, number)),
            mig=self._mig(),
            ecc=self._ecc(),
            clocks=self._clocks(),
            temperature_c=self._ask("Temperature", _SENSOR_GPU),
            power_watts=_map(self._ask("PowerUsage"), _watts),
            power_limit_watts=_map(self._ask("EnforcedPowerLimit"), _watts),
            pcie=PcieLink(
                generation=self._ask("CurrPcieLinkGeneration"),
                width=self._ask("CurrPcieLinkWidth"),
                generation_max=self._ask("MaxPcieLinkGeneration"),
                width_max=self._ask("MaxPcieLinkWidth"),
            ),
            processes=_map(self._ask("ComputeRunningProcesses"), _processes),
            fabric=self._fabric(),
            num_nvlinks=self._num_nvlinks(),
            fault=self._fault,  # last: any of the questions may have found it
        )

    def _ask(self, what: str, *arguments: Any) -> Any:
        """Return an answer, None for what this GPU or driver does not have, or ``Missing``."""
        if self._fault is not None:
            return Missing(reason=f"NVML cannot talk to this GPU: {self._fault}")
        function = getattr(self._nvml, f"nvmlDeviceGet{what}", None)
        if function is None:
            return None
        try:
            return function(self._handle, *arguments)
        except self._nvml.NVMLError as error:
            if error.value in self._absent:
                return None
            if error.value in self._fatal:
                self._fault = error_name(self._nvml, error)
            return Missing(reason=f"NVML, {what}: {error}")

    def _mig(self) -> Mig | Missing | None:
        mode = self._ask("MigMode")
        if mode is None or isinstance(mode, Missing):
            return mode
        num: int | Missing = 0
        if mode[0]:
            most = self._ask("MaxMigDeviceCount")
            if isinstance(most, Missing):
                num = most
            else:
                num = sum(self._has_instance(number) for number in range(min(int(most or 0), _MAX_MIG)))
        return Mig(enabled=bool(mode[0]), pending=bool(mode[1]), num_instances=num)

    def _has_instance(self, number: int) -> bool:
        try:
            self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._handle, number)
        except self._nvml.NVMLError:
            return False
        return True

    def _ecc(self) -> Ecc | Missing | None:
        mode = self._ask("EccMode")
        pending = self._ask("RetiredPagesPendingStatus")
        rows = self._ask("RemappedRows")
        volatile, aggregate = (
            self._ask("TotalEccErrors", _UNCORRECTED, counter) for counter in (_VOLATILE, _AGGREGATE)
        )
        values = (mode, pending, rows, volatile, aggregate)
        if all(value is None for value in values):
            return None
        if all(isinstance(value, Missing) for value in values):
            return mode  # type: ignore[no-any-return]
        return Ecc(
            enabled=_map(mode, lambda pair: bool(pair[0])),
            num_uncorrected_volatile=volatile,
            num_uncorrected_aggregate=aggregate,
            retirement_pending=_map(pending, bool),
            remap_pending=_map(rows, lambda row: bool(row[2])),
            remap_failed=_map(rows, lambda row: bool(row[3])),
        )

    def _clocks(self) -> Clocks:
        reasons = self._ask("CurrentClocksEventReasons")
        if reasons is None:  # a driver before 535 has it under its older name
            reasons = self._ask("CurrentClocksThrottleReasons")
        return Clocks(
            sm_mhz=self._ask("ClockInfo", _CLOCK_SM),
            sm_max_mhz=self._ask("MaxClockInfo", _CLOCK_SM),
            reasons=_map(reasons, _clock_reasons),
        )

    def _fabric(self) -> Fabric | Missing | None:
        kind = getattr(self._nvml, "c_nvmlGpuFabricInfo_v2_t", None) or getattr(
            self._nvml, "c_nvmlGpuFabricInfoV_t", None
        )
        answer: Any = None
        if kind is not None:
            info = kind()
            answer = self._ask("GpuFabricInfoV", ctypes.byref(info))
        if answer is None and hasattr(self._nvml, "c_nvmlGpuFabricInfo_t"):  # a driver before 545
            info = self._nvml.c_nvmlGpuFabricInfo_t()
            answer = self._ask("GpuFabricInfo", ctypes.byref(info))
        if answer is None or isinstance(answer, Missing):
            return answer
        state = _named(_FABRIC_STATES, info.state)
        if state == "not-supported":
            return None
        mask = int(getattr(info, "healthMask", 0)) if state == "completed" else 0
        faults = tuple(name for name, shift in _FABRIC_FAULTS.items() if mask >> shift & 3 == 1)
        return Fabric(state=state, status=int(info.status), faults=faults)

    def _num_nvlinks(self) -> int | Missing | None:
        num: int | None = None
        for link in range(_MAX_NVLINKS):
            try:
                active = self._nvml.nvmlDeviceGetNvLinkState(self._handle, link) if self._fault is None else 0
            except self._nvml.NVMLError as error:
                if num is None and error.value not in (*self._absent, self._nvml.NVML_ERROR_INVALID_ARGUMENT):
                    return Missing(reason=f"NVML, NvLinkState: {error}")
                return num
            num = (num or 0) + bool(active)
        return num if self._fault is None else Missing(reason=f"NVML cannot talk to this GPU: {self._fault}")


def _map(value: Any, change: Callable[[Any], T]) -> T | Missing | None:
    return value if value is None or isinstance(value, Missing) else change(value)


def _given(value: T | Missing | None) -> T | Missing:
    return Missing(reason="NVML does not tell it of this GPU") if value is None else value


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else f"number {number}"


def _watts(milliwatts: int) -> float:
    return round(milliwatts / 1000, 1)


def _pci_address(info: Any) -> str:
    """Return an address as sysfs writes it; NVML's has a domain of eight digits."""
    domain, _, rest = _text(info.busId).lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _clock_reasons(mask: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(_CLOCK_REASONS) if mask >> bit & 1)


def _processes(found: list[Any]) -> Processes:
    memory = [process.usedGpuMemory for process in found]
    told = None if any(value is None for value in memory) else sum(int(value) for value in memory)
    return Processes(num=len(found), memory_bytes=told)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
