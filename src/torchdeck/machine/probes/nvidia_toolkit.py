"""NVIDIA's Container Toolkit and the CDI specs on this machine."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchdeck import places, runner, toml
from torchdeck.machine.facts import Missing
from torchdeck.machine.facts.engines import CdiSpec, Toolkit, ToolkitConfig
from torchdeck.machine.probes.engine_info import version_in
from torchdeck.machine.probes.files import fold_person, is_there, names_in, names_of_user, read_text

CDI_DIRS = ("/etc/cdi", "/var/run/cdi")
_TIMEOUT_S = 3.0
_HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-toolkit")
_CONFIG = "nvidia-container-runtime/config.toml"
# A library of the driver carries its version in its name.
_DRIVER = re.compile(r"/lib(?:cuda|nvidia-ml)\.so\.(\d{3,4}\.\d{1,3}(?:\.\d{1,3})?)\b")
_DEVICE = re.compile(r"[\"']?(?:hostPath|path)[\"']?\s*:\s*[\"']?(/dev/(?:nvidia|dri/)[\w./-]{1,100})")


def gather_toolkit(root: Path, environment: Mapping[str, str]) -> Toolkit | None:
    """Return NVIDIA's Container Toolkit; None where there is none of it."""
    path = environment.get("PATH")
    hook = any(shutil.which(name, path=path) for name in _HOOKS)
    programs = [found for name in ("nvidia-ctk", "nvidia-container-cli") if (found := shutil.which(name, path=path))]
    config = read_config(root / "etc" / _CONFIG, root)
    if not hook and not programs:
        return None
    version: str | Missing = Missing(reason="neither nvidia-ctk nor nvidia-container-cli is there to tell it")
    for program in programs:
        done = runner.run([program, "--version"], timeout_s=_TIMEOUT_S)
        version = version_in(done.stdout)
        if isinstance(version, str):
            break
    own = Path(environment.get("XDG_CONFIG_HOME") or places.home() / ".config") / _CONFIG
    return Toolkit(version=version, hook=hook, config=config, user_config=read_config(own, root))


def read_config(file: Path, root: Path) -> ToolkitConfig | Missing | None:
    """Return what a configuration of NVIDIA's runtime sets; None where there is none.

    Args:
        file: The file.
        root: The folder that stands for ``/``.
    """
    if not is_there(file):
        return None
    text = read_text(file, 200_000)
    if text is None:
        return Missing(reason="the configuration of NVIDIA's runtime cannot be read")
    try:
        document = toml.loads(text)
    except (ValueError, TypeError):
        return Missing(reason="the configuration of NVIDIA's runtime is not TOML")
    cli, runtime = document.get("nvidia-container-cli"), document.get("nvidia-container-runtime")
    cli = cli if isinstance(cli, dict) else {}
    runtime = runtime if isinstance(runtime, dict) else {}
    mode, ldconfig = runtime.get("mode"), cli.get("ldconfig")
    shown = str(file)
    if str(root) != "/":
        shown = "/" + shown.removeprefix(str(root)).lstrip("/")
    return ToolkitConfig(
        path=fold_person(shown, names_of_user()),
        no_cgroups=cli.get("no-cgroups") is True,
        mode=mode[:50] if isinstance(mode, str) and mode else "auto",
        ldconfig=ldconfig[:200] if isinstance(ldconfig, str) and ldconfig else None,
        ldconfig_exists=is_there(root / ldconfig.lstrip("@").lstrip("/"))
        if isinstance(ldconfig, str) and ldconfig
        else None,
    )


def read_cdi(root: Path, more_dirs: Sequence[str] = (), now_s: float | None = None) -> tuple[CdiSpec, ...] | Missing:
    """Return the CDI specs that name NVIDIA's GPUs, in the order in which engines read them: later ones win.

    Args:
        root: The folder that stands for ``/``.
        more_dirs: Folders besides the usual ones.
        now_s: The present time; the clock's when None.
    """
    now_s = time.time() if now_s is None else now_s
    found = []
    # /run/cdi and /var/run/cdi are one folder; a spec is listed once.
    dirs = dict.fromkeys((*CDI_DIRS, *("/var/run/cdi" if folder == "/run/cdi" else folder for folder in more_dirs)))
    for folder in dirs:
        place = root / folder.lstrip("/")
        for name in names_in(place)[:50]:
            if not name.endswith((".yaml", ".yml", ".json")):
                continue
            text = read_text(place / name, 1_000_000)
            if text is None:
                return Missing(reason=f"a CDI spec in {folder} cannot be read")
            if re.search(r"nvidia\.com/(?:gpu|mig)\b", text):
                found.append(_spec(root, f"{folder}/{name}", place / name, text, now_s))
    return tuple(found)


def _spec(root: Path, shown: str, file: Path, text: str, now_s: float) -> CdiSpec:
    driver = _DRIVER.search(text)
    devices = sorted(set(_DEVICE.findall(text)))
    try:
        age_s = max(0, int(now_s - file.stat().st_mtime))
    except OSError:
        age_s = 0
    return CdiSpec(
        path=fold_person(shown, names_of_user()),
        age_s=age_s,
        driver=driver[1] if driver else None,
        absent_devices=tuple(device for device in devices if not is_there(root / device.lstrip("/")))[:20],
    )
