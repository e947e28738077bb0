"""What a stack is chosen for: a machine, and what somebody asked."""

from __future__ import annotations

import msgspec

from torchdeck.machine.facts import Facts, Missing, known


class StackRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and a wish.

    Args:
        driver: Version of the NVIDIA driver; None where there is none; Missing where that is not known, and then it
            restricts nothing.
        ccs: Compute capabilities of the GPUs that must all be served; Missing restricts nothing.
        python: The Python's minor version, such as ``3.11``; Missing restricts nothing.
        arch: ``x86_64`` or ``aarch64``, or one that has no builds.
        torch: What was asked for: ``2.6``, ``2.7-cu128``, ``latest``; empty for the reference.
    """

    driver: str | Missing | None
    ccs: tuple[tuple[int, int], ...] | Missing
    python: str | Missing
    arch: str
    torch: str = ""

    def as_texts(self) -> dict[str, str | None]:
        """Return the request for a report; None where there is none, or nothing is known."""
        ccs = known(self.ccs)
        return {
            "driver": "none" if self.driver is None else known(self.driver),
            "cc": None if ccs is None else ",".join(f"{major}.{minor}" for major, minor in ccs),
            "python": known(self.python),
            "arch": self.arch,
            "torch": self.torch or None,
        }


def request_from(facts: Facts, torch: str = "") -> StackRequest:
    """Return the request of a machine whose facts were gathered."""
    nvidia, python, system = facts.nvidia, facts.python, facts.system
    if isinstance(nvidia, Missing):
        driver: str | Missing | None = nvidia
        ccs: tuple[tuple[int, int], ...] | Missing = nvidia
    else:
        driver = nvidia.driver if nvidia.driver is None or isinstance(nvidia.driver, Missing) else nvidia.driver.version
        ccs = _ccs(nvidia.gpus)
    return StackRequest(
        driver=driver,
        ccs=ccs,
        python=python if isinstance(python, Missing) else ".".join(python.version.split(".")[:2]),
        arch=system.arch if not isinstance(system, Missing) else "unknown",
        torch=torch,
    )


def _ccs(gpus: tuple[object, ...] | Missing) -> tuple[tuple[int, int], ...] | Missing:
    """Return the different capabilities; Missing as soon as one GPU's is not known."""
    if isinstance(gpus, Missing):
        return gpus
    found: list[tuple[int, int]] = []
    for gpu in gpus:
        cc = gpu.cc  # type: ignore[attr-defined]
        if isinstance(cc, Missing):
            return cc
        found.append(cc)
    return tuple(dict.fromkeys(found))
