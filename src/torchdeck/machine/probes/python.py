"""A Python: the one that runs this, or another by its path. torch is read from its files, never imported."""

from __future__ import annotations

import json
import platform
import re
import sys
import sysconfig
from pathlib import Path

from torchdeck import places, runner
from torchdeck.machine.facts import Missing, PythonFacts, TorchBuild

# Printed by the other Python of itself; -I keeps its user's variables out.
_QUERY = """
import json, platform, sys, sysconfig
print(json.dumps({"version": platform.python_version(), "implementation": sys.implementation.name,
                  "include": sysconfig.get_path("include"), "site": sysconfig.get_path("purelib")}))
"""


def gather_python(path: Path | None = None) -> PythonFacts | Missing:
    """Return a Python and the torch in its environment.

    Args:
        path: Its executable; the Python that runs this when None.
    """
    if path is None:
        about = {
            "version": platform.python_version(),
            "implementation": sys.implementation.name,
            "include": sysconfig.get_path("include"),
            "site": sysconfig.get_path("purelib"),
        }
        path = Path(sys.executable)
    else:
        done = runner.run([str(path), "-I", "-c", _QUERY], timeout_s=10.0)
        if not done.ok:
            said = (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1]
            return Missing(reason=f"{places.fold_home(str(path))} does not run: {said}"[:300])
        about = json.loads(done.stdout)
    header = Path(about["include"]) / "Python.h"
    return PythonFacts(
        path=places.fold_home(str(path)),
        version=about["version"],
        implementation=about["implementation"],
        headers=places.fold_home(str(header)) if header.is_file() else None,
        torch=_torch_in(Path(about["site"])),
    )


def _torch_in(site: Path) -> TorchBuild | Missing | None:
    """Read ``torch/version.py``, which the build writes: plain assignments."""
    file = site / "torch" / "version.py"
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        return Missing(reason=f"{file.name} of torch cannot be read: {error.strerror}")
    version = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda(?:: [^=]+)? = '([^']+)'", text, re.MULTILINE)
    if version is None:
        return Missing(reason="torch's version.py does not say a version")
    return TorchBuild(version=version[1], cuda=cuda[1] if cuda else None)
