"""All probes, side by side."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from torchdeck import __version__
from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.probes.bounded import bounded
from torchdeck.machine.probes.caches import gather_caches
from torchdeck.machine.probes.engines import gather_engines
from torchdeck.machine.probes.host import gather_host
from torchdeck.machine.probes.network import gather_network
from torchdeck.machine.probes.nvml import gather_nvidia
from torchdeck.machine.probes.python import gather_python
from torchdeck.machine.probes.storage import gather_storage
from torchdeck.machine.probes.surroundings import gather_surroundings
from torchdeck.machine.probes.system import gather_system
from torchdeck.machine.probes.toolchain import gather_toolchain

# Names whose values decide what torch sees, and that hold no secret.
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CC",
    "CXX",
    "SLURM_JOB_ID",
)


def gather(python: Path | None = None) -> Facts:
    """Gather the facts of this machine. It never raises: what cannot be known is ``Missing``.

    Args:
        python: Another Python to describe than the one that runs this.
    """
    with ThreadPoolExecutor(max_workers=10) as pool:
        system = pool.submit(bounded, gather_system, what="the system", timeout_s=2.0)
        nvidia = pool.submit(bounded, gather_nvidia, what="NVIDIA's driver", timeout_s=25.0)
        about_python = pool.submit(bounded, lambda: gather_python(python), what="Python", timeout_s=12.0)
        toolchain = pool.submit(bounded, gather_toolchain, what="the compilers", timeout_s=8.0)
        storage = pool.submit(bounded, gather_storage, what="the disks", timeout_s=12.0)
        host = pool.submit(bounded, gather_host, what="the host", timeout_s=8.0)
        network = pool.submit(bounded, gather_network, what="the network", timeout_s=3.0)
        surroundings = pool.submit(bounded, gather_surroundings, what="the surroundings", timeout_s=3.0)
        engines = pool.submit(bounded, gather_engines, what="the container engines", timeout_s=12.0)
        caches = pool.submit(bounded, gather_caches, what="the caches", timeout_s=8.0)
        return Facts(
            torchdeck=__version__,
            gathered_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            system=system.result(),
            nvidia=nvidia.result(),
            python=about_python.result(),
            toolchain=toolchain.result(),
            storage=storage.result(),
            host=host.result(),
            network=network.result(),
            surroundings=surroundings.result(),
            engines=engines.result(),
            caches=caches.result(),
            variables={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        )


def gather_for_stack() -> Facts:
    """Gather what a stack is chosen by, and leave the rest out: system, driver and GPUs, the Python that runs this."""
    left_out = Missing(reason="not needed to choose a stack")
    with ThreadPoolExecutor(max_workers=3) as pool:
        system = pool.submit(bounded, gather_system, what="the system", timeout_s=2.0)
        nvidia = pool.submit(bounded, gather_nvidia, what="NVIDIA's driver", timeout_s=25.0)
        python = pool.submit(bounded, gather_python, what="Python", timeout_s=12.0)
        return Facts(
            torchdeck=__version__,
            gathered_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            system=system.result(),
            nvidia=nvidia.result(),
            python=python.result(),
            toolchain=left_out,
            storage=left_out,
            variables={},
        )
