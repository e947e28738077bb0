"""All probes, side by side."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from torchdeck import __version__
from torchdeck.machine.facts import Facts
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.nvml import gather_nvidia
from torchdeck.machine.probes.python import gather_python
from torchdeck.machine.probes.storage import gather_storage
from torchdeck.machine.probes.system import gather_system
from torchdeck.machine.probes.toolchain import gather_toolchain

# Names whose values decide what torch sees, and that hold no secret.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CC", "CXX")


def gather(python: Path | None = None) -> Facts:
    """Gather the facts of this machine. It never raises: what cannot be known is ``Missing``.

    Args:
        python: Another Python to describe than the one that runs this.
    """
    with ThreadPoolExecutor(max_workers=5) as pool:
        system = pool.submit(bounded, gather_system, what="the system", timeout_s=2.0)
        nvidia = pool.submit(bounded, gather_nvidia, what="NVIDIA's driver", timeout_s=8.0)
        about_python = pool.submit(bounded, lambda: gather_python(python), what="Python", timeout_s=12.0)
        toolchain = pool.submit(bounded, gather_toolchain, what="the compilers", timeout_s=8.0)
        storage = pool.submit(bounded, gather_storage, what="the disks", timeout_s=12.0)
        return Facts(
            torchdeck=__version__,
            gathered_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            system=system.result(),
            nvidia=nvidia.result(),
            python=about_python.result(),
            toolchain=toolchain.result(),
            storage=storage.result(),
            variables={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        )
