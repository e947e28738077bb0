"""The places that matter: space, inodes, permission, and how they are mounted."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from torchdeck import places
from torchdeck.machine.facts import Missing, Place, Storage
from torchdeck.machine.probes.bounded import bounded

# A network file system whose server is gone never answers.
_TIMEOUT_S = 2.0


def gather_storage() -> Storage:
    """Return the places that torchdeck, pip and torch write to."""
    wanted = {
        "home": places.home(),
        "tmp": Path(os.environ.get("TMPDIR") or tempfile.gettempdir()),
        "shm": Path("/dev/shm"),  # noqa: S108 - this very place is asked about
        "data": places.data_dir(),
        "cache": places.cache_dir(),
    }
    found = {
        name: bounded(lambda path=path: _place(path), what=str(path), timeout_s=_TIMEOUT_S)  # type: ignore[misc]
        for name, path in wanted.items()
    }
    return Storage(home_set=bool(os.environ.get("HOME")), **found)


def _place(path: Path) -> Place | Missing:
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if path == Path("/dev/shm") and not path.exists():  # noqa: S108
        return Missing(reason="there is no /dev/shm")
    stat = os.statvfs(existing)
    filesystem, noexec = _mount(existing)
    return Place(
        path=places.fold_home(str(path)),
        exists=path.exists(),
        writable=os.access(existing, os.W_OK | os.X_OK) and not stat.f_flag & os.ST_RDONLY,
        free_bytes=stat.f_bavail * stat.f_frsize,
        total_bytes=stat.f_blocks * stat.f_frsize,
        num_free_inodes=stat.f_favail if stat.f_files else None,
        filesystem=filesystem,
        noexec=noexec,
    )


def _mount(path: Path) -> tuple[str | Missing, bool | Missing]:
    """Return type and noexec of the file system that holds a folder, from /proc/mounts."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        missing = Missing(reason="/proc/mounts cannot be read")
        return missing, missing
    best: tuple[int, str, str] = (-1, "", "")
    real = str(path.resolve())
    for line in lines:
        fields = line.split()
        if len(fields) < 4:
            continue
        point = fields[1].encode().decode("unicode_escape")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # Of several mounts on one point the last one counts.
        if inside and len(point) >= best[0]:
            best = (len(point), fields[2], fields[3])
    if best[0] < 0:
        missing = Missing(reason=f"{path} is on no mount that /proc/mounts lists")
        return missing, missing
    return best[1], "noexec" in best[2].split(",")
