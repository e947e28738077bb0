"""The caches of torch, Triton, Hugging Face and the installers: where they are, how large, whose.

Counting is bounded: all caches together get a tenth of a second, and what was not reached by then is said to be
missing from the number.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from torchdeck import places
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.caches import Cache, Caches
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.files import fold_person, names_of_user

_WALK_S = 0.1
_MAX_ENTRIES = 20_000
# A network file system whose server is gone never answers.
_TIMEOUT_S = 1.0


def gather_caches(environment: Mapping[str, str] | None = None, walk_s: float = _WALK_S) -> Caches:
    """Return the caches.

    Args:
        environment: The environment variables; this process's own when None.
        walk_s: Time for counting all of them, in seconds.
    """
    environment = os.environ if environment is None else environment
    wanted = cache_places(environment, places.home(), Path(tempfile.gettempdir()))
    names = names_of_user()
    left_s = walk_s
    found: dict[str, Cache | Missing] = {}
    for number, (name, (path, variable)) in enumerate(wanted.items()):
        started = time.monotonic()
        share_s = left_s / (len(wanted) - number)
        found[name] = bounded(
            lambda path=path, variable=variable, share_s=share_s: read_cache(path, variable, names, share_s),  # type: ignore[misc]
            what=f"the cache {name}",
            timeout_s=_TIMEOUT_S,
        )
        left_s = max(0.0, left_s - (time.monotonic() - started))
    return Caches(**found)


def cache_places(environment: Mapping[str, str], home: Path, tmp: Path) -> dict[str, tuple[Path, str | None]]:
    """Return where each cache is, and the variable that put it there, by the rules of the program that fills it."""

    def first(*choices: tuple[str, str], default: Path) -> tuple[Path, str | None]:
        for variable, below in choices:
            if environment.get(variable):
                return Path(environment[variable]).expanduser() / below, variable
        return default, None

    cache = home / ".cache"
    user = next((environment[name] for name in ("LOGNAME", "USER", "LNAME", "USERNAME") if environment.get(name)), None)
    return {
        "inductor": first(
            ("TORCHINDUCTOR_CACHE_DIR", ""),
            default=tmp / f"torchinductor_{user or _name_of_user() or f'uid_{os.getuid()}'}",
        ),
        "triton": first(("TRITON_CACHE_DIR", ""), ("TRITON_HOME", ".triton/cache"), default=home / ".triton" / "cache"),
        "huggingface": first(
            ("HF_HOME", ""), ("HF_HUB_CACHE", ""), ("XDG_CACHE_HOME", "huggingface"), default=cache / "huggingface"
        ),
        "torch_hub": first(("TORCH_HOME", ""), ("XDG_CACHE_HOME", "torch"), default=cache / "torch"),
        "pip": first(("PIP_CACHE_DIR", ""), ("XDG_CACHE_HOME", "pip"), default=cache / "pip"),
        "uv": first(("UV_CACHE_DIR", ""), ("XDG_CACHE_HOME", "uv"), default=cache / "uv"),
    }


def _name_of_user() -> str | None:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def read_cache(path: Path, variable: str | None, names: frozenset[str], walk_s: float) -> Cache | Missing:
    """Return one cache.

    Args:
        path: Its folder.
        variable: What put it there.
        names: The user's names, which are folded.
        walk_s: Time for counting, in seconds.
    """
    shown = _shown(path, names)
    try:
        here = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        above = path
        while above != above.parent and not above.exists():
            above = above.parent
        return Cache(
            path=shown, variable=variable, exists=False, size_bytes=None, complete=True, mine=None,
            writable=above.is_dir() and os.access(above, os.W_OK | os.X_OK), owner_uid=None, num_locked=0,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return Missing(reason=f"{shown} cannot be looked at: {getattr(error, 'strerror', None) or 'no path'}")
    size_bytes, num_locked, complete = _walk(path, walk_s)
    return Cache(
        path=shown,
        variable=variable,
        exists=True,
        size_bytes=size_bytes,
        complete=complete,
        mine=here.st_uid == os.geteuid(),
        writable=stat.S_ISDIR(here.st_mode) and os.access(path, os.W_OK | os.X_OK),
        owner_uid=here.st_uid,
        num_locked=num_locked,
    )


def _shown(path: Path, names: frozenset[str]) -> str:
    text = str(path)
    parent, _, last = text.rpartition("/")
    if last.startswith("torchinductor_"):
        text = f"{parent}/torchinductor_$USER"
    return fold_person(text, names)


def _walk(path: Path, walk_s: float) -> tuple[int, int, bool]:
    """Return the size of the files, the number of folders that are locked, and whether all was counted.

    Breadth first, so that what lies near the top is seen; links are not followed.
    """
    until = time.monotonic() + walk_s
    uid = os.geteuid()
    size_bytes = num_locked = num_entries = 0
    level = [str(path)]
    complete = True
    while level:
        below: list[str] = []
        for folder in level:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        num_entries += 1
                        if num_entries > _MAX_ENTRIES or time.monotonic() > until:
                            return size_bytes, num_locked, False
                        try:
                            about = entry.stat(follow_symlinks=False)
                        except OSError:
                            complete = False
                            continue
                        size_bytes += about.st_blocks * 512
                        if stat.S_ISDIR(about.st_mode):
                            below.append(entry.path)
                            num_locked += about.st_uid != uid and not os.access(entry.path, os.W_OK | os.X_OK)
            except OSError:
                complete = False
        level = below
    return size_bytes, num_locked, complete
