"""Texts that people write for drivers, GPUs, Pythons and stacks, as values. Each error says what would be right."""

from __future__ import annotations

import re

from torchdeck.errors import UsageError

_ARCHES = {"x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def version_tuple(text: str) -> tuple[int, ...]:
    """Return a dotted number as a tuple, so that 535.104.05 is newer than 535.54.03."""
    return tuple(int(part) for part in text.split("."))


def parse_driver(text: str) -> str | None:
    """Return a driver's version; None for ``none``.

    Raises:
        UsageError: It is no version.
    """
    if text.strip().lower() == "none":
        return None
    if not re.fullmatch(r"\d{2,4}(\.\d{1,4}){0,2}", text.strip(), re.ASCII):
        raise UsageError(
            f"{text!r} is not a driver version",
            needs="a version as nvidia-smi shows it, such as 535.104.05, or: none",
            mend="torchdeck stacks --driver 535.104.05",
        )
    return text.strip()


def parse_ccs(text: str) -> tuple[tuple[int, int], ...]:
    """Return compute capabilities from ``9.0``, ``sm_90`` or ``8.6,12.0``, in the order given, each once.

    Raises:
        UsageError: One of them is none.
    """
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)a?", part.strip(), re.ASCII)
        if match is None:
            raise UsageError(
                f"{part.strip()!r} is not a compute capability",
                needs="a number such as 9.0 or sm_90; several separated by commas",
                mend="torchdeck stacks --cc 9.0",
            )
        found.append((int(match[1]), int(match[2])))
    return tuple(dict.fromkeys(found))


def parse_python(text: str) -> str:
    """Return a Python's minor version, such as ``3.11``, from ``3.11`` or ``3.11.7``.

    Raises:
        UsageError: It is none.
    """
    match = re.fullmatch(r"(\d)\.(\d{1,2})(\.\d{1,3})?", text.strip(), re.ASCII)
    if match is None:
        raise UsageError(
            f"{text!r} is not a Python version", needs="a version such as 3.11", mend="torchdeck stacks --python 3.11"
        )
    return f"{match[1]}.{match[2]}"


def parse_arch(text: str) -> str:
    """Return a processor architecture as the kernel names it; one that torch has no build for is kept as it is.

    Raises:
        UsageError: It is no name of an architecture.
    """
    name = text.strip().lower()
    if not re.fullmatch(r"[a-z0-9_]{2,20}", name, re.ASCII):
        raise UsageError(f"{text!r} is not an architecture", needs="x86_64 or aarch64")
    return _ARCHES.get(name, name)


def parse_stack(text: str) -> tuple[str, str]:
    """Return release and variant from ``2.6``, ``2.6.0``, ``2.7-cu128``, ``2.6.0+cpu``, ``latest``, ``latest-cpu``.

    Returns:
        The release or the beginning of one, empty for the default, ``latest`` for the newest; and the variant, empty
        where it is left open.

    Raises:
        UsageError: It is none of these.
    """
    match = re.fullmatch(
        r"(latest|\d{1,2}(?:\.\d{1,3}){0,2})?(?:[-+]?(cpu|cu\d{2,3}))?", text.strip().lower(), re.ASCII
    )
    if match is None:
        raise UsageError(
            f"{text!r} is not a stack",
            needs="a torch release, a build of one, or latest: 2.6, 2.6.0, 2.7-cu128, 2.6-cpu, latest",
            mend="torchdeck stacks",
        )
    return match[1] or "", match[2] or ""
