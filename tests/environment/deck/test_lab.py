"""JupyterLab of a deck, used as a browser uses it: kernels over its websocket, files and kernels over its REST."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Home
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.deck

_PURE = "iniconfig"  # a small package without dependencies that no deck has by itself
_WAIT_S = 240


@dataclass
class Ran:
    """What a cell did: its output and the error that it raised, if any."""

    output: str = ""
    error: str = ""


@dataclass
class Lab:
    """A running JupyterLab."""

    address: str
    user: Home

    @property
    def base(self) -> str:
        """Everything before ``/lab``."""
        return self.address.split("/lab?", maxsplit=1)[0]

    @property
    def token(self) -> str:
        """The secret."""
        return self.address.split("token=")[1]

    def call(self, path: str, method: str = "GET", body: object = None) -> Any:
        """Call the REST interface."""
        request = urllib.request.Request(
            f"{self.base}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def run(self, *cells: str) -> list[Ran]:
        """Run cells one after another in a new kernel."""
        return asyncio.run(self._in_kernel(lambda socket: _run_cells(socket, cells)))

    def debug(self, *commands: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Send requests to the debugger of a new kernel and return its replies."""
        return asyncio.run(self._in_kernel(lambda socket: _debug(socket, commands)))

    async def _in_kernel(self, work: Any) -> Any:
        kernel = self.call("kernels", "POST", {"name": "python3"})["id"]
        try:
            address = f"{self.base.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels?token={self.token}"
            socket = await websocket_connect(address, max_message_size=2**26)
            try:
                return await asyncio.wait_for(work(socket), _WAIT_S)
            finally:
                socket.close()
        finally:
            self.call(f"kernels/{kernel}", "DELETE")


async def _send(socket: Any, channel: str, kind: str, content: dict[str, Any]) -> str:
    ident = uuid.uuid4().hex
    header = {"msg_id": ident, "msg_type": kind, "username": "test", "session": "test", "version": "5.3"}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": channel}
    await socket.write_message(json.dumps(message))
    return ident


async def _replies(socket: Any, ident: str) -> Any:
    while True:
        text = await socket.read_message()
        assert text is not None, "the kernel's connection was closed"
        message = json.loads(text)
        if message["parent_header"].get("msg_id") == ident:
            yield message["msg_type"], message["content"]


async def _run_cells(socket: Any, cells: tuple[str, ...]) -> list[Ran]:
    done = []
    for code in cells:
        ran, seen = Ran(), set()
        ident = await _send(socket, "shell", "execute_request", {"code": code, "silent": False, "store_history": False})
        async for kind, content in _replies(socket, ident):
            if kind == "stream":
                ran.output += content["text"]
            elif kind == "execute_result":
                ran.output += content["data"]["text/plain"]
            elif kind == "error":
                ran.error = f"{content['ename']}: {content['evalue']}"
            seen.add(kind if kind != "status" else content["execution_state"])
            if {"idle", "execute_reply"} <= seen:
                break
        done.append(ran)
    return done


async def _debug(socket: Any, commands: tuple[tuple[str, dict[str, Any]], ...]) -> list[dict[str, Any]]:
    found = []
    for number, (command, arguments) in enumerate(commands, 1):
        request = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        ident = await _send(socket, "control", "debug_request", request)
        async for kind, content in _replies(socket, ident):
            if kind == "debug_reply":
                found.append(content)
                break
    return found


@pytest.fixture(scope="module")
def lab(deck_home: Home) -> Iterator[Lab]:
    """JupyterLab of the shared deck; what a test installs there is taken away again."""
    yield Lab(deck_home.json("up")["address"], deck_home)
    deck_home.run("exec", "--", "uv", "pip", "uninstall", _PURE)
    assert deck_home.run("down").returncode == 0


def test_a_cell_runs_in_the_deck(lab: Lab) -> None:
    """The kernel's Python is the deck's, torch is the locked one, and torchdeck is there."""
    ran = lab.run(
        "import sys; print(sys.prefix)",
        "import torch; print(torch.__version__, (torch.ones(3) * 2).sum().item())",
        "import torchdeck as td; print(td.__version__)",
        "1 / 0",
    )
    environment = lab.user.folder / "data" / "torchdeck" / "decks" / "digits" / "env"
    assert ran[0].output.strip() == str(environment)
    assert ran[1].output.startswith("2.6.0")
    assert ran[1].output.strip().endswith("6.0")
    assert ran[2].error == ""
    assert ran[2].output.strip()
    assert ran[3].error.startswith("ZeroDivisionError")


def test_a_kernel_has_the_decks_variables(lab: Lab) -> None:
    """Compile caches in the user's cache folder, constraints for pip and uv, and the deck's name."""
    (ran,) = lab.run("import json, os; print(json.dumps(dict(os.environ)))")
    env = json.loads(ran.output)
    cache = lab.user.folder / "cache" / "torchdeck" / "compile"
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        folder = Path(env[variable])
        assert folder.is_relative_to(cache)
        assert folder.stat().st_mode & 0o077 == 0
    assert env["TORCHDECK_DECK"] == "digits"
    assert env["PIP_CONSTRAINT"] == env["UV_CONSTRAINT"]
    assert env["VIRTUAL_ENV"].endswith("/digits/env")
    assert int(env["OMP_NUM_THREADS"]) >= 1
    assert "PYTHONPATH" not in env


def test_compiled_code_lands_in_the_decks_cache(lab: Lab) -> None:
    """Torch itself takes its cache folder from the deck."""
    code = "from torch._inductor.runtime.runtime_utils import cache_dir; print(cache_dir())"
    (ran,) = lab.run(code)
    assert ran.error == ""
    assert Path(ran.output.strip()).is_relative_to(lab.user.folder / "cache" / "torchdeck" / "compile")


def test_the_debugger_works(lab: Lab) -> None:
    """JupyterLab's first three requests to it are answered with success."""
    hello = {
        "clientID": "jupyterlab",
        "clientName": "JupyterLab",
        "adapterID": "python",
        "pathFormat": "path",
        "linesStartAt1": True,
        "columnsStartAt1": True,
        "supportsVariableType": True,
    }
    replies = lab.debug(("debugInfo", {}), ("initialize", hello), ("attach", {}), ("debugInfo", {}))
    assert [reply["success"] for reply in replies] == [True] * 4, replies
    assert replies[0]["body"]["isStarted"] is False
    assert replies[3]["body"]["isStarted"] is True


def test_there_is_one_kernel_and_it_says_what_it_is(lab: Lab) -> None:
    """No kernel of another Jupyter on this machine shows up, and the name tells torch and Python."""
    specs = lab.call("kernelspecs")
    assert list(specs["kernelspecs"]) == ["python3"]
    assert specs["default"] == "python3"
    assert specs["kernelspecs"]["python3"]["spec"]["display_name"].startswith("torch 2.6.0 · Python 3.")
    assert specs["kernelspecs"]["python3"]["spec"]["metadata"]["debugger"] is True


def test_the_working_folder_is_the_projects_notebooks(lab: Lab) -> None:
    """What lies there is listed, and what is saved there appears in the project."""
    assert "first_steps.ipynb" in {entry["name"] for entry in lab.call("contents")["content"]}
    lab.call("contents/note.txt", "PUT", {"type": "file", "format": "text", "content": "saved"})
    file = lab.user.project / "notebooks" / "note.txt"
    assert file.read_text() == "saved"
    lab.call("contents/note.txt", "DELETE")
    assert not file.exists()


def test_a_package_installed_in_a_cell_stays(lab: Lab) -> None:
    """``%pip install`` and ``uv pip install`` go into the deck; after down and up the package is still there."""
    installed, gone, again, used = lab.run(
        f"%pip install {_PURE}",
        f"%pip uninstall -y {_PURE}",
        f"!uv pip install {_PURE}",
        f"import {_PURE}; print({_PURE}.__file__)",
    )
    assert f"Successfully installed {_PURE}" in installed.output
    assert f"Successfully uninstalled {_PURE}" in gone.output
    assert f"+ {_PURE}" in again.output
    assert "/digits/env/" in used.output
    before = lab.address
    assert lab.user.run("down").returncode == 0
    report = lab.user.json("up")
    assert report["address"] == before
    assert report["did"] == ["started JupyterLab"]
    (ran,) = lab.run(f"import {_PURE}; print('there')")
    assert ran.output.strip() == "there"


@pytest.mark.parametrize("command", ["%pip install torch==2.5.1", "!uv pip install torch==2.5.1"])
def test_a_cell_cannot_replace_torch(lab: Lab, command: str) -> None:
    """Whichever installer is used, it refuses, names torch, and nothing changes."""
    ran, code, after = lab.run(command, "print(_exit_code)", "import torch; print(torch.__version__)")
    assert "torch==2.5.1" in ran.output
    assert "Successfully installed" not in ran.output
    assert code.output.strip() != "0"
    assert after.output.startswith("2.6.0")


def test_a_cell_may_ask_for_the_torch_that_is_there(lab: Lab) -> None:
    """An unpinned ``pip install torch``, as a copied notebook has it, finds its wish fulfilled."""
    pip, uv = lab.run("%pip install torch torchvision", "!uv pip install torch torchvision")
    assert "Requirement already satisfied: torch in" in pip.output
    assert "Successfully installed" not in pip.output
    assert "Checked" in uv.output or "Audited" in uv.output


def test_a_process_in_a_cell_is_in_the_deck_too(lab: Lab) -> None:
    """``!python`` is the deck's, and so is ``python`` of ``torchdeck exec``."""
    (ran,) = lab.run("!python -c 'import sys; print(sys.prefix)'")
    done: subprocess.CompletedProcess[str] = lab.user.run("exec", "--", "python", "-c", "import sys; print(sys.prefix)")
    assert ran.output.strip() == done.stdout.strip()
    assert done.stdout.strip().endswith("/digits/env")


def test_down_ends_the_kernels_too(lab: Lab) -> None:
    """No process of a running kernel is left; the next up gives the same address."""
    import psutil

    kernel = lab.call("kernels", "POST", {"name": "python3"})["id"]
    processes = [p for p in psutil.process_iter(["cmdline"]) if any(kernel in word for word in p.info["cmdline"] or [])]
    assert len(processes) == 1
    assert lab.user.run("down").returncode == 0
    psutil.wait_procs(processes, timeout=5)
    assert not processes[0].is_running()
    assert lab.user.json("up")["address"] == lab.address
