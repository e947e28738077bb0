"""Whether one of PyTorch's own indexes can be reached: asked through uv, which knows their addresses.

The question costs one small request, so an index that is not there answers in milliseconds, and one behind a
firewall that swallows packets within the time limit.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from torchdeck import runner

_TIMEOUT_S = 20.0


def can_reach(index: str, uv: str, environment: dict[str, str] | None = None) -> bool:
    """Return whether an index answers.

    Args:
        index: Its name, such as ``pytorch/cu126``.
        uv: The uv program.
        environment: The variables that uv needs for proxies and certificates; this process's own when None.
    """
    backend = index.removeprefix("pytorch/")
    with tempfile.TemporaryDirectory(prefix="torchdeck-index-") as folder:
        done = runner.run(
            [uv, "pip", "compile", "-", "--quiet", "--no-deps", "--no-cache", "--torch-backend", backend],
            timeout_s=_TIMEOUT_S,
            stdin="torch\n",
            env={**(environment if environment is not None else os.environ), "UV_HTTP_RETRIES": "0"},
            cwd=Path(folder),
        )
    return done.ok
