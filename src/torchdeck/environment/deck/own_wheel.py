"""torchdeck's own wheel, packed from the package that is running: a checkout and an installed copy alike.

Packing what is there needs no build tool and no network, and what goes into a deck is exactly what made it.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib import metadata
from pathlib import Path

import torchdeck

_SKIPPED = {"__pycache__"}
# One fixed time in the archive, so that equal contents give an equal file.
_TIME = (2020, 1, 1, 0, 0, 0)


def package_files() -> dict[str, bytes]:
    """Return the files of the running package, by their path in a wheel."""
    root = Path(torchdeck.__file__).parent
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not _SKIPPED.intersection(path.parts) and path.suffix != ".pyc":
            files[str(Path("torchdeck") / path.relative_to(root))] = path.read_bytes()
    return files


def own_digest() -> str:
    """Return what identifies the running torchdeck, changes in a checkout included."""
    digest = hashlib.sha256()
    for name, data in package_files().items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def own_requirements(*extras: str) -> list[str]:
    """Return what torchdeck itself needs, with some of its extras, as requirement lines."""
    from packaging.requirements import Requirement

    lines = []
    for text in metadata.requires("torchdeck") or []:
        requirement = Requirement(text)
        if "extra" not in str(requirement.marker):
            # A marker on the Python stays for the resolver: the deck's may be another than the one that runs this.
            lines.append(str(requirement))
        elif requirement.marker and any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            requirement.marker = None
            lines.append(str(requirement))
    return lines


def write_own_wheel(folder: Path) -> Path:
    """Pack the running torchdeck as a wheel in ``folder`` and return its path."""
    version = torchdeck.__version__
    info = f"torchdeck-{version}.dist-info"
    files = package_files()
    distribution = metadata.distribution("torchdeck")
    files[f"{info}/METADATA"] = (distribution.read_text("METADATA") or "").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: torchdeck\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\ntorchdeck = torchdeck.cli:main\n"
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torchdeck-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return path
