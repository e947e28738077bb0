"""Requirements as people write them, as pins: name, versions, build tag, line.

It knows pip's syntax, wheels' file names, and conda's ``name=version``. A text with an unresolved variable keeps its
name and loses its version: nothing is said about what is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_MAX_CHARS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WHEEL = re.compile(r"(?:^|/)([A-Za-z0-9_.]+)-(\d[A-Za-z0-9.!+%]*)-[^/]*\.whl$")
_VARIANT = re.compile(r"/(cu\d{2,3}|cpu|rocm[\d.]+|xpu)/?$")


@dataclass(frozen=True)
class Pin:
    """One requirement.

    Args:
        name: Canonical name of the package.
        specifier: Versions that it accepts, such as ``>=2.6``; empty for any.
        line: Where it stands.
        marker: Its environment marker, as text.
        direct: Whether it names a file or an address, so that no index takes part.
        open: Whether a part of it is not known (a variable).
    """

    name: str
    specifier: str
    line: int
    marker: str = ""
    direct: bool = False
    open: bool = False

    @property
    def _exact(self) -> Version | None:
        match = re.fullmatch(r"\s*={2,3}\s*([^,*\s]+)\s*", self.specifier)
        try:
            return Version(match[1]) if match else None
        except InvalidVersion:
            return None

    @property
    def version(self) -> str:
        """The one version that it accepts, without build tag; empty if it accepts several."""
        return self._exact.public if self._exact else ""

    @property
    def local(self) -> str:
        """The build tag of an exact pin, such as ``cu124``; empty if there is none."""
        return (self._exact.local or "") if self._exact else ""

    @property
    def bounded(self) -> bool:
        """Whether a release that does not exist yet is shut out."""
        return self.direct or self.open or bool(re.search(r"==|~=|<", self.specifier))

    def accepts(self, version: str) -> bool:
        """Whether a version is accepted; a pin that is not understood accepts every one."""
        if self._exact is not None and "+" not in version:
            return self.version == version
        try:
            return SpecifierSet(self.specifier).contains(version, prereleases=True)
        except InvalidSpecifier:
            return True


def parse_pin(text: str, line: int) -> Pin | None:
    """Return one requirement of pip; None if the text is none, or concerns no Linux."""
    text = text.strip()
    if len(text) > _MAX_CHARS:
        return None
    wheel = _WHEEL.search(text.split("#")[0].split(" @ ")[-1].strip())
    if wheel:
        version = wheel[2].replace("%2B", "+").replace("%2b", "+")
        return Pin(canonicalize_name(wheel[1]), f"=={version}", line, direct=True)
    name = _NAME.match(text)
    if name is None:
        return None
    if "$" in text or "{{" in text:
        return Pin(canonicalize_name(name[0]), "", line, open=True)
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, RecursionError):
        return None
    marker = str(requirement.marker) if requirement.marker else ""
    if marker and not _on_linux(marker):
        return None
    direct = requirement.url is not None
    return Pin(canonicalize_name(requirement.name), str(requirement.specifier), line, marker, direct)


def parse_conda_spec(text: str, line: int) -> Pin | None:
    """Return one package of conda, such as ``pytorch=2.5.1``, ``conda-forge::numpy>=2`` or ``python 3.12``."""
    match = re.match(
        r"(?:[\w./-]+::)?([A-Za-z0-9][\w.-]*)\s*([=<>!~]{0,2})\s*([\w.*,<>=!|+]*)", text.strip()[:_MAX_CHARS]
    )
    if match is None:
        return None
    name, operator, version = match[1].lower(), match[2], match[3].split("=")[0]
    if not version:
        return Pin(name, "", line)
    if operator in ("=", "") and re.fullmatch(r"[\d.]+", version):
        # One = means that version and all below it: 2.5 is 2.5.*, and a full 2.5.1 is that release.
        version, operator = (version, "==") if version.count(".") >= 2 else (f"{version.rstrip('.')}.*", "==")
    return Pin(name, f"{operator}{version}" if operator != "=" else f"=={version}", line)


def variant_of(index: str) -> str:
    """Return the build that an index holds, by the end of its address, such as ``cu124``; empty if that is open."""
    match = _VARIANT.search(index.strip("'\""))
    return match[1] if match else ""


@lru_cache(maxsize=256)
def _on_linux(marker: str) -> bool:
    """Whether a marker is true for some Python on Linux."""
    fixed = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
    try:
        return any(
            Marker(marker).evaluate(
                {
                    **fixed,
                    "python_version": f"3.{minor}",
                    "python_full_version": f"3.{minor}.1",
                    "platform_machine": machine,
                    "platform_python_implementation": "CPython",
                    "implementation_name": "cpython",
                }
            )
            for minor in range(8, 16)
            for machine in ("x86_64", "aarch64")
        )
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return True
