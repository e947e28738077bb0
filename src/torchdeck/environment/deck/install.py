"""Carrying out the plan of a deck: resolve, make the environment, install, write its files."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from torchdeck import runner
from torchdeck.environment.deck.files import Files
from torchdeck.environment.deck.integrity import Damage
from torchdeck.environment.deck.own_wheel import write_own_wheel
from torchdeck.environment.deck.paths import DeckPaths, site_packages
from torchdeck.environment.deck.plan import Plan
from torchdeck.environment.deck.pythons import Python, inspect_python
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.state import write_atomic
from torchdeck.environment.lock import (
    LOCK_NAME,
    Lock,
    LockHead,
    normalized,
    packages_from_pylock,
    render_lock,
    render_preferences,
)
from torchdeck.environment.uv import find_uv, run_uv, uv_environment
from torchdeck.errors import TorchdeckError, UsageError

_UV_PIP = 1  # where the arguments after "uv" begin


def resolve_lock(plan: Plan, paths: DeckPaths, head: LockHead, inputs: list[str], previous: Lock | None) -> Lock:
    """Choose the exact versions, staying with those of an earlier lock where they still fit.

    Raises:
        TorchdeckError: The index cannot be reached, or nothing satisfies every requirement.
    """
    write_atomic(paths.inputs, "\n".join(inputs) + "\n")
    # uv prefers the versions that it finds in its output file.
    paths.pylock.unlink(missing_ok=True)
    if previous is not None:
        write_atomic(paths.pylock, render_preferences(previous))
    run_uv(
        plan.step("resolve").argv[_UV_PIP:],
        cwd=paths.folder,
        doing="choose matching versions",
        timeout_s=900.0,
        log=paths.install_log,
    )
    packages = packages_from_pylock(paths.pylock.read_text(encoding="utf-8"))
    return Lock(head=head, packages=packages)


def make_environment(plan: Plan, paths: DeckPaths, python: Python, reporter: Reporter) -> None:
    """Make the virtual environment, or leave a sound one as it is.

    An environment of another Python is made anew: packages of one do not run on the other.

    Raises:
        UsageError: The folder holds something that is not ours.
    """
    _check_folder(paths)
    _remove_scraps(paths.environment)
    try:
        if inspect_python(paths.python).version == python.version and (paths.environment / "pyvenv.cfg").is_file():
            return
    except UsageError:
        pass  # none yet, or one whose interpreter is gone
    argv = plan.step("environment").argv[_UV_PIP:]
    existing = sorted((paths.environment / "lib").glob("python3.*")) if paths.environment.is_dir() else []
    wanted = f"python{python.minor[0]}.{python.minor[1]}"
    if existing and [folder.name for folder in existing] != [wanted]:
        reporter.note(f"the environment was made for {existing[0].name}: making it anew for {wanted}")
        shutil.rmtree(paths.environment)
    paths.environment.mkdir(parents=True, exist_ok=True)
    # The marker comes first: whatever happens after it, the folder is known to be ours.
    write_atomic(paths.marker, f"{paths.name}\n")
    run_uv(argv, cwd=paths.folder, doing="make the environment", timeout_s=300.0, log=paths.install_log)


def _remove_scraps(environment: Path) -> None:
    """Remove what an installation that was killed left of a package's own records: uv stops at such a package.

    Without them it counts as missing, and uv installs it over what is there.
    """
    packages = site_packages(environment)
    for info in packages.glob("*.dist-info") if packages else []:
        if not all((info / name).is_file() and (info / name).stat().st_size for name in ("METADATA", "RECORD")):
            shutil.rmtree(info)


def _check_folder(paths: DeckPaths) -> None:
    """Refuse a folder of the user's that holds something else."""
    if paths.environment == paths.folder / "env" or not paths.environment.exists():
        return
    if not paths.environment.is_dir():
        raise UsageError(f"{paths.environment} is not a folder", mend="torchdeck up --dir /another/folder")
    if any(paths.environment.iterdir()):
        owner = paths.marker.read_text(encoding="utf-8").strip() if paths.marker.is_file() else ""
        if owner != paths.name:
            raise UsageError(
                f"{paths.environment} is not empty",
                found=f"the environment of the deck {owner}" if owner else "files that are not torchdeck's",
                needs="an empty or new folder",
                mend=f"torchdeck up --dir {paths.environment.parent / (paths.environment.name + '-torchdeck')}",
            )


def install_packages(plan: Plan, paths: DeckPaths, lock: Lock, damage: Damage, reporter: Reporter) -> None:
    """Install the lock; packages that are damaged are installed again.

    Raises:
        TorchdeckError: The network, the disk or a hash failed; what is there stays, and the next ``up`` goes on.
    """
    again = [f"--reinstall-package={name}" for name in damage.packages]
    argv = [*plan.step("install").argv[_UV_PIP:], *again]
    run_uv(
        argv,
        cwd=paths.folder,
        doing="install the packages",
        timeout_s=4 * 3600.0,
        on_line=download_progress(lock, reporter),
        log=paths.install_log,
    )


def install_own(plan: Plan, paths: DeckPaths, project: Path) -> None:
    """Install the running torchdeck, then what the project holds itself.

    Raises:
        TorchdeckError: One of them cannot be installed.
    """
    write_own_wheel(paths.folder / "wheel")
    argv = plan.step("torchdeck").argv[_UV_PIP:]
    run_uv(argv, cwd=paths.folder, doing="add torchdeck to the deck", timeout_s=300.0, log=paths.install_log)
    for step in plan.steps:
        if step.name == "project":
            argv = step.argv[_UV_PIP:]
            run_uv(argv, cwd=project, doing="install what the project holds itself", log=paths.install_log)


def remove_packages(names: list[str], paths: DeckPaths) -> None:
    """Remove packages that the new lock no longer has, such as the CUDA 12 libraries under a CUDA 13 torch."""
    if names:
        argv = ["pip", "uninstall", "--python", str(paths.python), *names]
        run_uv(argv, cwd=paths.folder, doing="remove what the new stack does not need", log=paths.install_log)


def write_files(files: Files, cache_folders: Mapping[str, Path]) -> None:
    """Write the files of a deck and make its cache folders.

    Raises:
        OSError: There is no space or no permission.
    """
    for path, (text, mode) in files.items():
        write_atomic(path, text, mode)
    for folder in cache_folders.values():
        # Compiled code is code: only its owner may put any there.
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def would_download(plan: Plan, paths: DeckPaths, python: Python, lock: Lock) -> bool:
    """Whether uv's cache lacks any package of the lock. True when uv does not say."""
    argv = [*plan.step("install").argv[_UV_PIP:], "--dry-run"]
    with tempfile.TemporaryDirectory(prefix="torchdeck-plan-") as scratch:
        # The deck's own lock is written later, once it is certain that there is space.
        file = Path(scratch) / LOCK_NAME
        file.write_text(render_lock(lock), encoding="utf-8")
        argv[argv.index("--requirements") + 1] = str(file)
        place = argv.index("--python")
        argv[place : place + 2] = ["--python", str(python.path), "--target", str(Path(scratch) / "nothing")]
        try:
            done = run_uv(argv, cwd=paths.folder, doing="see what must be downloaded", timeout_s=300.0)
        except TorchdeckError:
            return True
    return re.search(r"Would download \d+ package", done.stderr + done.stdout) is not None


def download_progress(lock: Lock, reporter: Reporter) -> Callable[[str], None]:
    """Return a reader of uv's lines that tells how many bytes have come."""
    sizes = {package.name: package.size_bytes for package in lock.packages}
    total = sum(sizes.values())
    under_way: list[str] = []
    done_bytes = 0

    def line(text: str) -> None:
        nonlocal done_bytes
        match = re.match(r"^\s*(Downloading|Downloaded|Building|Built|Prepared|Installed)\s+(\S+)", text)
        if match is None:
            return
        verb, name = match[1], normalized(match[2])
        if verb in ("Downloading", "Building"):
            under_way.append(name)
        elif verb in ("Downloaded", "Built") and name in under_way:
            under_way.remove(name)
            done_bytes += sizes.get(name, 0)
        elif verb == "Prepared":
            done_bytes = total
        shown = ", ".join(sorted(under_way, key=lambda item: -sizes.get(item, 0))[:3])
        reporter.progress(done_bytes, total, shown or "writing files")

    return line


def free_bytes(folder: Path) -> int:
    """Return the free space where a folder is, or would be."""
    stat = os.statvfs(existing(folder))
    return stat.f_bavail * stat.f_frsize


def copies_from_cache(folder: Path) -> bool:
    """Whether uv copies its cache's files into a folder instead of linking them."""
    environment = uv_environment()
    if environment.get("UV_LINK_MODE") == "copy":
        return True
    done = runner.run([find_uv(), "cache", "dir"], timeout_s=20.0, env=environment, cwd=existing(folder))
    cache = Path(done.stdout.strip())
    return done.ok and existing(cache).stat().st_dev != existing(folder).stat().st_dev


def existing(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder
