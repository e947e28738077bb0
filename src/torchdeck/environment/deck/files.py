"""The files that make an environment a deck: constraints, kernel, JupyterLab's configuration. Texts only, no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from torchdeck.environment.cache.key import cache_folders, cache_key
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.state import DeckState

# A file to be written: its text and its permission bits.
Files = dict[Path, tuple[str, int]]


def key_of(state: DeckState) -> str:
    """Return the name of a deck's compile cache, which decks of the same build share."""
    return cache_key(
        torch=state.torch, variant=state.variant, triton=state.triton, python=minor(state.python), gpu=state.gpu
    )


def deck_variables(state: DeckState, paths: DeckPaths, num_threads: int) -> dict[str, str]:
    """Return the variables that belong to a deck: its constraints, compile caches and threads.

    Args:
        state: The deck.
        paths: Where it keeps things.
        num_threads: The cores that this process may use; torch would count those of the whole machine.
    """
    # A file address instead of a path: pip and uv split the value at spaces.
    constraint = paths.constraints.as_uri()
    return {
        "VIRTUAL_ENV": str(paths.environment),
        "PIP_CONSTRAINT": constraint,
        "UV_CONSTRAINT": constraint,
        "OMP_NUM_THREADS": str(num_threads),
        "TORCHDECK_DECK": state.name,
        **{variable: str(folder) for variable, folder in cache_folders(key_of(state)).items()},
    }


def deck_environment(variables: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a process in a deck.

    What would reach past the deck is left out: another environment's PYTHONHOME, PYTHONPATH or Jupyter folders.
    """
    harmful = {"PYTHONHOME", "PYTHONPATH", "JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "UV_PYTHON", "UV_SYSTEM_PYTHON"}
    env = {name: value for name, value in base.items() if name not in harmful and not name.startswith("JPY_")}
    binaries = str(Path(variables["VIRTUAL_ENV"]) / "bin")
    env.update(variables)
    env["PATH"] = f"{binaries}:{base.get('PATH') or '/usr/local/bin:/usr/bin:/bin'}"
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return env


def lab_variables(paths: DeckPaths) -> dict[str, str]:
    """Return the variables that keep JupyterLab's files in the deck, apart from any other Jupyter of this user."""
    return {
        "JUPYTER_CONFIG_DIR": str(paths.lab / "config"),
        "JUPYTER_DATA_DIR": str(paths.lab / "data"),
        "JUPYTER_RUNTIME_DIR": str(paths.lab / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(paths.lab / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(paths.lab / "workspaces"),
    }


def plan_files(state: DeckState, paths: DeckPaths, constraints: str, num_threads: int) -> Files:
    """Return the files of a deck, beside those that its packages bring."""
    variables = deck_variables(state, paths, num_threads)
    kernel = {
        "argv": [str(paths.python), "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"torch {state.torch} · Python {minor(state.python)} ({state.name})",
        "language": "python",
        "metadata": {"debugger": True},
        # Also for a Jupyter of the user's own, or VS Code, that starts this kernel without the deck's environment.
        "env": {**variables, "PATH": f"{paths.environment / 'bin'}:${{PATH}}"},
    }
    share = paths.environment / "share" / "jupyter"
    return {
        paths.constraints: (constraints, 0o644),
        # For every pip of this environment, started from a cell, a terminal or anywhere else.
        paths.environment / "pip.conf": (f"[global]\nconstraint = {paths.constraints.as_uri()}\n", 0o644),
        share / "kernels" / "python3" / "kernel.json": (_json(kernel), 0o644),
        # No question about news on first opening, and no request to the network that nobody asked for.
        share / "lab" / "settings" / "page_config.json": (
            _json({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}),
            0o644,
        ),
        paths.lab / "config" / "jupyter_server_config.py": (_SERVER_CONFIG, 0o600),
    }


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def minor(python: str) -> str:
    """Return 3.11 for 3.11.7."""
    return ".".join(python.split(".")[:2])


# The token stands in a file of its own that only its owner may read: never in an argument list, never in a log.
_SERVER_CONFIG = '''\
"""Configuration of this deck's JupyterLab. Written anew at every start by torchdeck."""
import os
from pathlib import Path

c = get_config()
c.IdentityProvider.token = (Path(__file__).parents[1] / "token").read_text().strip()
c.PasswordIdentityProvider.allow_password_change = False
c.ServerApp.open_browser = False
c.ServerApp.port_retries = 0
c.ServerApp.allow_root = os.geteuid() == 0
c.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL") or "/bin/sh"]}
c.KernelSpecManager.ensure_native_kernel = False
c.KernelSpecManager.allowed_kernelspecs = {"python3"}
c.FileContentsManager.delete_to_trash = False
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None
'''
