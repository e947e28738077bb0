"""JupyterLab of a deck: start it in the background, find it again, stop it.

A process id alone proves nothing (a reboot, a reused id): a Lab counts as running when the process was created when
the state says so and answers to the deck's own token.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

from torchdeck import runner
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.state import DeckState, LabState, write_atomic
from torchdeck.errors import FindingsError, OutsideError, UsageError

START_TIMEOUT_S = 90.0
_NUM_PORTS = 100


def token_of(paths: DeckPaths) -> str:
    """Return the deck's token, made on first use and readable by its owner only."""
    with contextlib.suppress(FileNotFoundError):
        token = paths.token.read_text(encoding="ascii").strip()
        if len(token) >= 32:
            paths.token.chmod(0o600)
            return token
    paths.lab.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = secrets.token_hex(24)
    write_atomic(paths.token, token + "\n", 0o600)
    return token


def address_of(lab: LabState, token: str) -> str:
    """Return the address to open in a browser."""
    host = "127.0.0.1" if lab.host in {"0.0.0.0", "::", ""} else lab.host  # noqa: S104 - compared, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{lab.port}/lab?token={token}"


def is_alive(lab: LabState | None) -> bool:
    """Whether the very process that was started still runs."""
    if lab is None:
        return False
    import psutil

    try:
        process = psutil.Process(lab.pid)
        return abs(process.create_time() - lab.created) < 2.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def answers(lab: LabState, token: str, timeout_s: float = 3.0) -> bool:
    """Whether the server at this address is JupyterLab and takes the deck's token."""
    host = "127.0.0.1" if lab.host in {"0.0.0.0", ""} else lab.host  # noqa: S104 - compared, not bound
    host = f"[{host}]" if ":" in host else host
    request = urllib.request.Request(
        f"http://{host}:{lab.port}/api/status", headers={"Authorization": f"token {token}"}
    )
    # Straight to this machine: a proxy in the environment has no business with it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout_s) as reply:
            return "started" in json.loads(reply.read(100_000))
    except (OSError, ValueError, urllib.error.URLError):
        return False


def free_port(first: int, host: str, preferred: int | None = None) -> int:
    """Return a port that is free now: the preferred one, else the first from ``first`` on.

    Raises:
        UsageError: The port or host is not one.
        OutsideError: No port is free.
    """
    if not 1 <= first <= 65535:
        raise UsageError(f"{first} is not a port", needs="a number from 1 to 65535")
    candidates: list[int] = [*([preferred] if preferred else []), *range(first, min(first + _NUM_PORTS, 65536))]
    for port in candidates:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
            return port
        except socket.gaierror:
            raise UsageError(
                f"{host!r} is not an address of this machine", mend="torchdeck up --host 127.0.0.1"
            ) from None
        except PermissionError:
            continue
        except OSError as error:
            if error.errno == 99:  # EADDRNOTAVAIL
                raise UsageError(
                    f"{host!r} is not an address of this machine", mend="torchdeck up --host 127.0.0.1"
                ) from None
    raise OutsideError(
        "no port is free for JupyterLab",
        rule="host-port-taken",
        found=f"{candidates[0]} to {candidates[-1]} are all in use, or not allowed",
        mend="torchdeck up --port 9888",
    )


def start(
    state: DeckState, paths: DeckPaths, environment: dict[str, str], *, port: int, host: str, notebooks: Path
) -> LabState:
    """Start JupyterLab, wait until it answers, and return how to find it.

    Raises:
        FindingsError: It ended, or does not answer in time; the error holds the end of its log.
    """
    import psutil

    token = token_of(paths)
    alive, text = False, ""
    for attempt in range(5):
        # Another program may take the port between our look and Lab's own: then Lab ends, and the next is tried.
        chosen = free_port(port, host, preferred=state.port if attempt == 0 else None)
        with paths.lab_log.open("a", encoding="utf-8") as log:
            log.write(f"--- starting on {host}:{chosen} at {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            offset = log.tell()
        argv = [*_argv(paths), f"--ServerApp.ip={host}", f"--ServerApp.port={chosen}"]
        argv.append(f"--ServerApp.root_dir={notebooks}")
        pid = runner.start_detached(argv, env=environment, cwd=notebooks, log=paths.lab_log)
        try:
            created = psutil.Process(pid).create_time()
        except psutil.Error:
            created = time.time()
        lab = LabState(pid=pid, created=created, host=host, port=chosen)
        if _wait_until_it_answers(lab, token):
            return lab
        alive = is_alive(lab)
        stop(lab)
        text = _tail(paths.lab_log, offset)
        if alive or "already in use" not in text:
            break
    raise FindingsError(
        "JupyterLab did not start" if not alive else f"JupyterLab does not answer after {START_TIMEOUT_S:.0f} s",
        found="the end of its log:",
        detail=text,
        mend=("torchdeck logs", "torchdeck up --repair"),
    )


def find_running(paths: DeckPaths, token: str) -> LabState | None:
    """Find a JupyterLab of this deck that the state does not know: its starter was killed before it wrote it down."""
    import psutil

    for file in sorted((paths.lab / "runtime").glob("jpserver-*.json")):
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
            process = psutil.Process(int(known["pid"]))
            found = LabState(
                pid=process.pid, created=process.create_time(), host=str(known["hostname"]), port=int(known["port"])
            )
        except (OSError, ValueError, KeyError, TypeError, psutil.Error):
            continue
        if answers(found, token):
            return found
    return _find_starting(paths)


def _find_starting(paths: DeckPaths) -> LabState | None:
    """Find a JupyterLab of this deck among the processes: it has written nothing yet, or does not answer."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, KeyError, ValueError):
            argv = process.cmdline()
            if argv[:3] != _argv(paths) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            given = dict(word.partition("=")[::2] for word in argv[3:])
            host, port = given["--ServerApp.ip"], int(given["--ServerApp.port"])
            return LabState(pid=process.pid, created=process.create_time(), host=host, port=port)
    return None


def _argv(paths: DeckPaths) -> list[str]:
    return [str(paths.python), "-m", "jupyterlab"]


def _wait_until_it_answers(lab: LabState, token: str) -> bool:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):  # a child of ours that ended must not look alive
            os.waitpid(lab.pid, os.WNOHANG)
        if not is_alive(lab):
            return False
        if answers(lab, token):
            return True
        time.sleep(0.1)
    return False


def stop(lab: LabState, grace_s: float = 15.0) -> None:
    """Stop JupyterLab and every kernel and terminal that it started."""
    if not is_alive(lab):
        return
    import psutil

    try:
        server = psutil.Process(lab.pid)
        family = [*server.children(recursive=True), server]
        server.send_signal(signal.SIGTERM)
    except psutil.Error:
        return
    with contextlib.suppress(ChildProcessError):
        deadline = time.monotonic() + grace_s
        while is_alive(lab) and time.monotonic() < deadline:
            os.waitpid(lab.pid, os.WNOHANG)
            time.sleep(0.05)
    _, alive = psutil.wait_procs(family, timeout=grace_s if is_alive(lab) else 3.0)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=5.0)


def _tail(log: Path, offset: int, num_lines: int = 15) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        lines = file.read(200_000).decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-num_lines:]) or "(it printed nothing)"
