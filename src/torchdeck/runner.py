"""The only place that starts a process.

Argument lists only, never a shell. Every call has a time limit or streams, output is decoded leniently, and a
program that does not exist is a result, not an exception, so that a probe can use this without a net.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# What a process started by a shell reports when the program is missing or may not be executed.
RC_NOT_FOUND = 127
RC_NOT_EXECUTABLE = 126
RC_TIMED_OUT = 124


@dataclass(frozen=True)
class Completed:
    """How a process ended.

    Args:
        argv: What was run.
        rc: Its exit code; negative for a signal, 124 for a time-out, 126 and 127 as shells use them.
        stdout: What it printed.
        stderr: What it printed to standard error.
        wall_s: How long it took.
    """

    argv: tuple[str, ...]
    rc: int
    stdout: str = ""
    stderr: str = ""
    wall_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.rc == 0

    @property
    def timed_out(self) -> bool:
        """Whether it was stopped at its time limit."""
        return self.rc == RC_TIMED_OUT


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    on_line: Callable[[str], None] | None = None,
    max_output_chars: int = 8_000_000,
) -> Completed:
    """Run a program to its end, or to its time limit, and return what it printed.

    The program runs in a session of its own; at the limit, or when this process is interrupted, the whole
    session is ended, so that nothing is left running.

    Args:
        argv: Program and arguments.
        timeout_s: Time limit in seconds.
        env: The whole environment of the process; this process's own when None.
        cwd: Its working folder.
        stdin: Text for its standard input; closed when None.
        on_line: Called with each line as it comes, from both streams, without the newline.
        max_output_chars: Output beyond this is dropped (a flood must not fill the memory).
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        return Completed(tuple(argv), RC_NOT_FOUND, stderr=str(error))
    except OSError as error:
        return Completed(tuple(argv), RC_NOT_EXECUTABLE, stderr=str(error))
    texts: tuple[list[str], list[str]] = ([], [])
    readers = [
        threading.Thread(target=_drain, args=(stream, text, on_line, max_output_chars), daemon=True)
        for stream, text in zip((process.stdout, process.stderr), texts, strict=True)
    ]
    for reader in readers:
        reader.start()
    timed_out = False
    try:
        if stdin is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(stdin)
                process.stdin.close()
        process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        end_session(process.pid)
        process.wait()
    except BaseException:
        end_session(process.pid)
        process.wait()
        raise
    for reader in readers:
        # A grandchild may hold the pipe open after its parent ended; its output is not waited for.
        reader.join(timeout=2.0)
    rc = RC_TIMED_OUT if timed_out else process.returncode
    return Completed(tuple(argv), rc, "".join(texts[0]), "".join(texts[1]), time.monotonic() - started)


def _drain(stream: object, text: list[str], on_line: Callable[[str], None] | None, limit: int) -> None:
    kept = 0
    with contextlib.suppress(ValueError, OSError):
        for line in stream:  # type: ignore[attr-defined]
            if kept < limit:
                text.append(line)
                kept += len(line)
            if on_line is not None:
                on_line(line.rstrip("\n"))


def end_session(pid: int, grace_s: float = 2.0) -> None:
    """End a process and all of its session: first politely, then for good."""
    for sig, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 0.0)):
        try:
            os.killpg(pid, sig)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            try:
                os.killpg(pid, 0)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.02)


def start_detached(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> int:
    """Start a program that outlives this one, its output appended to ``log``; return its process id.

    Raises:
        OSError: The program cannot be started, or the log cannot be written.
    """
    with log.open("ab") as out:
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid


def run_attached(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> int:
    """Run a program on this terminal, signals and all, and return its exit code as a shell would report it."""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, _: object) -> None:
        for process in started:
            process.send_signal(number)
        if not started:
            early.append(number)

    # Ctrl-C reaches the program through the terminal; a signal sent to us alone is handed on. The handlers stand
    # before it starts, and are functions: what is ignored here would be ignored there too.
    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: hand_on, signal.SIGHUP: hand_on}
    previous = {
        sig: signal.signal(sig, handler)
        for sig, handler in handlers.items()
        if signal.getsignal(sig) is not signal.SIG_IGN  # as under nohup: for the program too
    }
    try:
        process = subprocess.Popen(list(argv), env=dict(env), cwd=cwd)
        started.append(process)
        for number in early:
            process.send_signal(number)
        rc = process.wait()
    except FileNotFoundError:
        return RC_NOT_FOUND
    except OSError:
        return RC_NOT_EXECUTABLE
    finally:
        for sig, handler in previous.items():
            signal.signal(sig, handler)
    return 128 - rc if rc < 0 else rc
