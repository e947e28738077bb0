"""A deck outlives what happens to computers: killed processes, deleted files, no network, full and closed disks.

Every test ends with ``torchdeck up`` making things right, or with an error that says what is in the way. None ever
shows a traceback.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import Home

pytestmark = pytest.mark.deck

_TRACE = "Traceback (most recent call last)"


def _deck(user: Home, name: str = "digits") -> Path:
    return user.folder / "data" / "torchdeck" / "decks" / name


def _state(user: Home) -> Any:
    return json.loads((_deck(user) / "deck.json").read_text())


def _packages(user: Home) -> Path:
    return next((_deck(user) / "env" / "lib").glob("python3.*/site-packages"))


def _status(user: Home) -> Any:
    (deck,) = user.json("status")["decks"]
    return deck


def _labs(user: Home) -> list[int]:
    """Return the process ids of every JupyterLab server of this user, those torchdeck forgot included."""
    lines = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [pid for pid, line in lines if "jupyterlab" in line and any(str(user.folder) in word for word in line)]


def _kill_when(user: Home, seen: Callable[[], bool], *arguments: str, whole: bool = False) -> str:
    """Start ``up``, kill it with SIGKILL as soon as something is seen, and return what it had said.

    Args:
        user: Whose ``up``.
        seen: Asked again and again.
        arguments: Of ``up``.
        whole: Whether the programs that it started are killed too, as a power cut does.
    """
    log = user.folder / "killed.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        process = user.popen("up", *arguments, stdout=file, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 400
        while not seen() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None and whole else []
        process.kill()
        assert process.wait() == -signal.SIGKILL, f"it had ended before: {log.read_text()}"
        for child in family:
            child.kill()
    return log.read_text()


def _said(user: Home, text: str) -> Callable[[], bool]:
    log = user.folder / "killed.txt"
    return lambda: log.is_file() and text in log.read_text()


def _fails(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Assert that a command ended in words that a person can use."""
    assert done.returncode == code, done.stderr
    assert _TRACE not in done.stderr
    assert done.stderr.lstrip().splitlines()
    assert "error" in done.stderr
    for word in words:
        assert word in done.stderr, f"{word!r} is not in: {done.stderr}"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A user with a project and, after the first test, a deck."""
    folder = tmp_path_factory.mktemp("survival")
    user = Home(folder / "home", folder / "digits")
    user.project.mkdir()
    yield user
    user.stop_everything()
    assert _labs(user) == []


@pytest.fixture(scope="module")
def killed(user: Home) -> dict[str, Any]:
    """What the world looked like after each of three kills, and what the fourth ``up`` did."""
    seen: dict[str, Any] = {}

    def installing() -> bool:
        return len(list((_deck(user) / "env" / "lib").glob("python3.*/site-packages/*.dist-info"))) > 3

    seen["power cut"] = _kill_when(user, installing, "--no-lab", whole=True)
    seen["after power cut"] = _status(user)
    shutil.rmtree(_deck(user) / "env" / "lib")
    # Now only torchdeck itself: uv, which it started, may go on and finish meanwhile.
    seen["kill"] = _kill_when(user, installing, "--no-lab")
    seen["after kill"] = _status(user)
    seen["before lab"] = _kill_when(user, _said(user, "proving that it computes right"))
    seen["after before lab"] = _status(user)
    seen["up"] = user.json("up", timeout_s=800)
    return seen


def test_an_installation_that_was_killed_is_incomplete_and_goes_on(killed: dict[str, Any]) -> None:
    """Neither half-installed deck is ever called ready, and the same ``up`` completes it."""
    assert killed["after power cut"]["state"] == "incomplete"
    assert killed["after kill"]["state"] == "incomplete"
    assert killed["up"]["proof"]["passed"]


def test_a_kill_between_installation_and_proof_leaves_the_proof_to_do(user: Home, killed: dict[str, Any]) -> None:
    """The packages are not installed again; the deck is not started unproven."""
    assert killed["after before lab"]["state"] == "stopped"
    assert "did not pass" in killed["after before lab"]["detail"]
    assert killed["up"]["did"] == ["started JupyterLab"]
    assert _status(user)["state"] == "running"
    assert list(_deck(user).parent.iterdir()) == [_deck(user)]


def test_a_kill_while_lab_starts_leaves_one_lab(user: Home, killed: dict[str, Any]) -> None:
    """The next up finds the JupyterLab that nobody wrote down, and starts no second one."""
    assert user.run("down").returncode == 0
    _kill_when(user, lambda: bool(_labs(user)))
    orphans = _labs(user)
    report = user.json("up")
    assert report["address"] == killed["up"]["address"]
    assert len(_labs(user)) == 1
    assert _labs(user)[0] == _state(user)["lab"]["pid"]
    assert orphans


def test_a_lab_that_was_killed_is_started_anew_at_the_same_address(user: Home, killed: dict[str, Any]) -> None:
    """Status says stopped meanwhile."""
    os.kill(_state(user)["lab"]["pid"], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _labs(user) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _status(user)["state"] == "stopped"
    report = user.json("up")
    assert report["did"] == ["started JupyterLab"]
    assert report["address"] == killed["up"]["address"]


def test_a_process_id_that_now_belongs_to_another_is_left_alone(user: Home, killed: dict[str, Any]) -> None:
    """After a reboot the number may be anybody's: here it is this very test's."""
    assert user.run("down").returncode == 0
    state = _state(user)
    stranger = {"pid": os.getpid(), "created": 1.0, "host": "127.0.0.1", "port": 8888}
    (_deck(user) / "deck.json").write_text(json.dumps({**state, "lab": stranger}))
    assert _status(user)["state"] == "stopped"
    assert "was not running" in user.run("down").stdout
    (_deck(user) / "deck.json").write_text(json.dumps({**state, "lab": stranger}))
    assert user.json("up")["address"] == killed["up"]["address"]
    assert len(_labs(user)) == 1


def test_what_was_deleted_is_named_and_repaired(user: Home, killed: dict[str, Any]) -> None:
    """A file of torch, a whole package and the link to the interpreter: each is found, and one up mends all."""
    packages = _packages(user)
    (packages / "torch" / "functional.py").unlink()
    for gone in (*packages.glob("fsspec*"), *packages.glob("jinja2*")):
        shutil.rmtree(gone)
    done = user.run("verify", "--json")
    assert done.returncode == 1, done.stderr
    files = next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "files")
    assert files["outcome"] == "fail"
    for name in ("fsspec is missing", "jinja2 is missing", "torch/functional.py is gone"):
        assert name in files["detail"]
    assert "not verified" in user.run("verify").stdout

    # As uv leaves a package when it is killed at the wrong moment; it then refuses to touch the environment at all.
    next(packages.glob("idna-*.dist-info/METADATA")).unlink()
    next(packages.glob("certifi-*.dist-info/RECORD")).unlink()
    python = _deck(user) / "env" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nonexistent/python3")
    assert _status(user)["state"] == "broken"
    _fails(user.run("verify"), 1, "no Python", "torchdeck up")
    done = user.run("up")
    assert done.returncode == 0, done.stderr
    assert "repairing the environment" in done.stderr
    assert user.run("exec", "--", "python", "-c", "import torch, fsspec, jinja2, idna, certifi").returncode == 0
    assert _status(user)["state"] == "running"
    assert user.json("up")["did"] == []


def test_damaged_state_and_locks_are_named_and_made_anew(user: Home, killed: dict[str, Any]) -> None:
    """A cut-off deck.json and locks: status says broken, up names the project's lock and how to renew it."""
    folder = _deck(user)
    text = (folder / "deck.json").read_text()
    (folder / "deck.json").write_text(text[: len(text) // 2])
    for lock in (folder / "torchdeck.lock", user.project / "torchdeck.lock"):
        lock.write_bytes(lock.read_bytes()[:700])
    assert _status(user)["state"] == "broken"
    assert user.run("logs").returncode == 0, "what was printed is wanted most when something is broken"
    for command in ("exec", "verify", "down"):
        done = user.run(command, *(["--", "true"] if command == "exec" else []))
        _fails(done, 125 if command == "exec" else 2)
    _fails(user.run("up"), 2, str(user.project / "torchdeck.lock"), "torchdeck up --relock")
    report = user.json("up", "--relock", timeout_s=800)
    assert report["deck"] == "digits"
    assert report["proof"]["passed"]
    assert len(_labs(user)) == 1
    assert "torch==2.6.0" in (user.project / "torchdeck.lock").read_text()
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"[]", b'{"schema": 5}', b'{"schema": "torchdeck.deck/9"}'])
def test_no_content_of_the_state_makes_a_traceback(home: Home, content: bytes) -> None:
    """Whatever is in deck.json, each command answers in words."""
    folder = _deck(home, "project")
    folder.mkdir(parents=True)
    (folder / "deck.json").write_bytes(content)
    (folder / "project").write_text(f"{home.project}\n")
    for arguments in (["status"], ["status", "--all", "--json"], ["down"], ["logs"], ["verify"], ["exec", "true"]):
        done = home.run(*arguments)
        assert done.returncode in (0, 1, 2, 125), f"{arguments}: {done.stderr}"
        assert _TRACE not in done.stderr
        assert "bug in torchdeck" not in done.stderr
    # A damaged deck can always be removed; one that a later torchdeck made is not ours to judge.
    if b"schema" not in content:
        assert home.run("rm", "--yes").returncode == 0
        assert not folder.exists()


@pytest.fixture
def offline(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A user whose uv has nothing in its cache."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty cache"))
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "5")
    return home


@pytest.mark.parametrize("kind", ["offline", "dead proxy"])
def test_without_a_network_up_says_so_and_claims_nothing(
    offline: Home, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Exit 4, what was not reached, how to reach it; the deck is incomplete, and nothing of it is started."""
    if kind == "offline":
        monkeypatch.setenv("UV_OFFLINE", "1")
    else:
        for variable in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"):
            monkeypatch.setenv(variable, "http://127.0.0.1:9")
    done = offline.run("up")
    _fails(done, 4, "could not", "mend", "network" if kind == "offline" else "proxy")
    assert _status(offline)["state"] == "incomplete"
    assert not (_deck(offline, "project") / "env" / "bin").exists()
    assert not (offline.project / "torchdeck.lock").exists()
    assert _labs(offline) == []
    _fails(offline.run("exec", "true"), 125)


def test_a_lock_without_its_files_is_not_installed_offline(
    offline: Home, monkeypatch: pytest.MonkeyPatch, user: Home, killed: dict[str, Any]
) -> None:
    """A colleague's lock says what is needed, the network is what is missing; the environment is never called ready."""
    shutil.copy(user.project / "torchdeck.lock", offline.project)
    monkeypatch.setenv("UV_OFFLINE", "1")
    _fails(offline.run("up"), 4, "could not install the packages", "mend")
    assert _status(offline)["state"] == "incomplete"
    assert json.loads((_deck(offline, "project") / "deck.json").read_text())["ready"] is False
    _fails(offline.run("exec", "true"), 125, "not complete", "torchdeck up")


def _closed(folder: Path) -> list[str]:
    """Close a folder to writing, and return what must stand before a command to feel it, root included."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        folder.chmod(0o555)
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and there is no setpriv to take that from it")
    # Another's folder, and a root without the right to override permissions.
    os.chown(folder, 65534, 65534)
    folder.chmod(0o755)
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown"]


def _run_closed(prefix: list[str], user: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    import sys

    return subprocess.run(
        [*prefix, sys.executable, "-m", "torchdeck", *arguments],
        env=user.env,
        cwd=user.project,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_place_that_may_not_be_written_is_named(home: Home, tmp_path: Path) -> None:
    """The data folder, or the one given with --dir: exit 4, the folder, and where to go instead."""
    data = home.folder / "data"
    prefix = _closed(data)
    _fails(_run_closed(prefix, home, "up"), 4, str(data), "no permission", "mend")
    assert list(data.iterdir()) == []
    assert _run_closed(prefix, home, "status").returncode == 0
    data.chmod(0o755)
    if prefix:
        os.chown(data, 0, 0)

    disk = tmp_path / "disk"
    prefix = _closed(disk)
    _fails(_run_closed(prefix, home, "up", "--dir", str(disk / "env")), 4, str(disk), "no permission", "mend")
    assert _status(home)["state"] == "incomplete"


def test_notebooks_that_may_not_be_written_are_named_before_anything_is_installed(home: Home, tmp_path: Path) -> None:
    """Nobody waits for gigabytes to learn that the project belongs to somebody else."""
    prefix = _closed(tmp_path / "theirs")
    home.project = tmp_path / "theirs"
    _fails(_run_closed(prefix, home, "up"), 4, "notebooks", "--notebooks")
    assert not (_deck(home, "theirs") / "env" / "bin").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 MB."""
    folder = tmp_path / "small disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200m", "torchdeck-test", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _moved(user: Home, data: Path) -> dict[str, str]:
    return {**user.env, "XDG_DATA_HOME": str(data), "UV_LINK_MODE": "copy"}


def test_a_disk_that_is_too_small_is_seen_before_anything_is_stored(home: Home, small_disk: Path) -> None:
    """Exit 4, how much is there and how much is needed, and another place to go to."""
    done = home.run("up", env=_moved(home, small_disk))
    _fails(done, 4, "disk-full", "GB free", "--dir")
    assert not (small_disk / "torchdeck" / "decks" / "project" / "env" / "bin").exists()


@pytest.mark.full
def test_a_disk_that_fills_up_on_the_way_is_named_and_another_one_works(home: Home, small_disk: Path) -> None:
    """What uv could not write is no ready deck; with --dir elsewhere the same deck is completed."""
    env = _moved(home, small_disk)
    # A large disk at first, so that the look beforehand finds nothing; then it shrinks under the installation.
    subprocess.run(["mount", "-o", "remount,size=20g", str(small_disk)], check=True)
    deck = small_disk / "torchdeck" / "decks" / "project"
    _kill_when_env(home, env, lambda: len(list(deck.glob("env/lib/*/site-packages/*.dist-info"))) > 3)
    used = sum(path.lstat().st_size for path in small_disk.rglob("*") if path.is_file())
    subprocess.run(["mount", "-o", f"remount,size={used // 2**20 + 60}m", str(small_disk)], check=True)
    _fails(home.run("up", env=env), 4, "disk-full", "no space left", "--dir")
    assert json.loads((deck / "deck.json").read_text())["ready"] is False
    elsewhere = home.folder / "elsewhere"
    done = home.run("up", "--no-lab", "--dir", str(elsewhere), env={**env, "UV_LINK_MODE": "hardlink"})
    assert done.returncode == 0, done.stderr
    assert home.run("exec", "--", "python", "-c", "import torch", env=env).returncode == 0
    assert home.run("rm", "--yes", env=env).returncode == 0
    assert not elsewhere.exists()


def _kill_when_env(user: Home, env: dict[str, str], seen: Callable[[], bool]) -> None:
    process = user.popen("up", "--no-lab", env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not seen() and process.poll() is None:
        time.sleep(0.002)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    for child in family:
        child.kill()
    psutil.wait_procs(family, timeout=10)
