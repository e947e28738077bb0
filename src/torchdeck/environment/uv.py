"""The uv command: how it is called, with which environment, and what its failures mean.

uv resolves and installs; nothing of that is done again here. What this file adds: mirrors and certificates that
only pip's configuration knows reach uv too, and a failed uv becomes one of torchdeck's errors. It does not know
what is being installed.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from torchdeck import places, runner
from torchdeck.errors import DiskError, FindingsError, NetworkError, ToolError, TorchdeckError
from torchdeck.machine.probes.package_index import can_reach

# Variables of the caller that would redirect what uv installs, or where to.
_HARMFUL = (
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_REQUIRE_HASHES",
    "UV_SYSTEM_PYTHON",
    "UV_TORCH_BACKEND",
    "UV_VENV_CLEAR",
    "UV_WORKING_DIR",
    "VIRTUAL_ENV",
)
_NETWORK = "the package index, directly, by proxy (HTTPS_PROXY) or by mirror (UV_DEFAULT_INDEX, PIP_INDEX_URL)"
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_NO_INDEX", "UV_OFFLINE")


@lru_cache(maxsize=1)
def find_uv() -> str:
    """Return the path of the uv program.

    Raises:
        ToolError: It is not installed.
    """
    import uv

    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError as error:
        raise ToolError("uv is not installed", found=str(error), mend="python -m pip install uv") from None


def uv_environment() -> dict[str, str]:
    """Return the environment for a uv process: this one's, cleaned, with pip's mirror and certificates added."""
    env = {name: value for name, value in os.environ.items() if name not in _HARMFUL}
    pip = pip_configuration()
    if "index-url" in pip and not any(name in env for name in _INDEX_VARIABLES) and not _uv_configures_index():
        env["UV_DEFAULT_INDEX"] = pip["index-url"]
    if "cert" in pip and "SSL_CERT_FILE" not in env:
        env["SSL_CERT_FILE"] = pip["cert"]
    for variable in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if env.get(variable) and "SSL_CERT_FILE" not in env and Path(env[variable]).is_file():
            env["SSL_CERT_FILE"] = env[variable]
    if "proxy" in pip and not any(name in env for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        env["HTTPS_PROXY"] = env["HTTP_PROXY"] = pip["proxy"]
    return env


def pip_configuration() -> dict[str, str]:
    """Return what pip's own configuration says of index, certificate and proxy: files first, then variables."""
    folders = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)
    user = Path(os.environ.get("XDG_CONFIG_HOME") or places.home() / ".config")
    files = [*(Path(folder) / "pip/pip.conf" for folder in folders), Path("/etc/pip.conf")]
    files += [places.home() / ".pip/pip.conf", user / "pip/pip.conf"]
    chosen = os.environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        files = []
    elif chosen:
        files.append(Path(chosen))
    parser = configparser.RawConfigParser()
    for file in files:
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself will complain about it; uv does not need it
    found: dict[str, str] = {}
    for section in ("global", "install"):
        for key in ("index-url", "cert", "proxy"):
            if parser.has_option(section, key):
                found[key] = parser.get(section, key).strip()
    for key in ("index-url", "cert", "proxy"):
        value = os.environ.get(f"PIP_{key.replace('-', '_').upper()}")
        if value:
            found[key] = value
    return found


def _uv_configures_index() -> bool:
    """Whether one of uv's own files names an index, which then wins over pip's."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or places.home() / ".config")
    for file in (
        user / "uv/uv.toml",
        Path("/etc/uv/uv.toml"),
        Path(os.environ.get("UV_CONFIG_FILE") or "/nonexistent"),
    ):
        try:
            if re.search(r"index", file.read_text(encoding="utf-8", errors="replace")):
                return True
        except OSError:
            continue
    return False


def run_uv(
    arguments: Sequence[str],
    *,
    cwd: Path,
    doing: str,
    timeout_s: float = 3600.0,
    on_line: Callable[[str], None] | None = None,
    log: Path | None = None,
    extra_env: Mapping[str, str] | None = None,
) -> runner.Completed:
    """Run uv to its end.

    Args:
        arguments: What follows ``uv``.
        cwd: Its working folder; uv reads no project's configuration from outside it.
        doing: What is being done, for the error message: ``install the packages``.
        timeout_s: Time limit in seconds.
        on_line: Called with each line that uv prints.
        log: File that the output is appended to.
        extra_env: Further variables.

    Raises:
        TorchdeckError: uv failed; the error says why.
    """
    env = {**uv_environment(), **(extra_env or {})}
    done = runner.run([find_uv(), *arguments], timeout_s=timeout_s, env=env, cwd=cwd, on_line=on_line)
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ uv {' '.join(arguments)}\n{done.stdout}{done.stderr}[exit {done.rc}]\n")
    if not done.ok:
        raise explain_failure(done, doing)
    return done


def explain_failure(done: runner.Completed, doing: str) -> TorchdeckError:
    """Return the error that a failed uv stands for."""
    text = f"{done.stdout}\n{done.stderr}"
    tail = "\n".join(line for line in done.stderr.strip().splitlines()[-12:])
    title = f"could not {doing}"
    if done.timed_out:
        return NetworkError(title, found="no end after the time limit", detail=tail, mend="torchdeck up")
    if "No space left on device" in text or "os error 28" in text:
        return DiskError(
            title,
            rule="disk-full",
            found="no space left on the device",
            needs="free space for the environment and for uv's cache",
            mend=("uv cache prune", "torchdeck up --dir /another/disk/env"),
            detail=tail,
        )
    if re.search(r"invalid peer certificate|UnknownIssuer|certificate verify", text):
        return NetworkError(
            title,
            found="the package index, or a proxy before it, shows a certificate that is not trusted here",
            needs="the certificate authority of that proxy or mirror",
            mend="export SSL_CERT_FILE=/path/to/ca-bundle.crt; torchdeck up",
            detail=tail,
        )
    if re.search(r"Permission denied|os error 13|Read-only file system|os error 30", text):
        return DiskError(
            title,
            found="a folder that may not be written",
            needs="a place you may write",
            mend="torchdeck up --dir /a/folder/of/yours/env",
            detail=tail,
        )
    if re.search(r"No solution found|unsatisfiable|no matching distribution", text, re.IGNORECASE):
        if re.search(r"network (connectivity )?(is|was) disabled", text):
            return NetworkError(
                title,
                found="uv's cache does not hold every package, and the network is switched off (UV_OFFLINE)",
                needs=_NETWORK,
                mend=("unset UV_OFFLINE; torchdeck up",),
                detail=tail,
            )
        return FindingsError(
            title, found="no set of versions satisfies every requirement", detail=_reasons(done.stderr)
        )
    if re.search(r"Hash mismatch", text, re.IGNORECASE):
        return FindingsError(
            title,
            found="a downloaded file is not the one that the lock names",
            needs="the very files that were locked",
            mend=("torchdeck up --relock",),
            detail=tail,
        )
    if re.search(r"error sending request|dns error|Failed to fetch|Connect|timed out|status code|offline", text):
        return NetworkError(
            title,
            found=_first_cause(done.stderr),
            needs=_NETWORK,
            mend="torchdeck up  (it goes on where it stopped)",
            detail=tail,
        )
    return ToolError(title, found=f"uv ended with {done.rc}", detail=tail or "(it printed nothing)")


def _reasons(stderr: str) -> str:
    text = stderr[stderr.find("No solution found") :] if "No solution found" in stderr else stderr
    return "\n".join(text.strip().splitlines()[:25])


def _first_cause(stderr: str) -> str:
    """Return uv's innermost cause, which names the real trouble (a name that does not resolve, a refusal)."""
    causes = [line.split(":", 1)[1].strip() for line in stderr.splitlines() if line.strip().startswith("cause:")]
    heads = [line.split(":", 1)[1].strip() for line in stderr.splitlines() if line.startswith("error:")]
    return "; ".join(dict.fromkeys([*heads[:1], *causes[-1:]])) or "the network did not answer"


@cache
def reachable(index: str) -> bool:
    """Whether one of PyTorch's own indexes, such as ``pytorch/cu126``, answers from here."""
    return can_reach(index, find_uv(), uv_environment())
