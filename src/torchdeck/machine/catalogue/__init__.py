"""What is known of torch releases, builds, GPU code and drivers: data with its source, and no logic.

The TOML files beside this module are the data. A row says how it is known (``method``): ``verified`` from the
published file, ``read`` in public documentation, ``inferred`` from other rows.
"""

from torchdeck.machine.catalogue.loader import (
    REFERENCE,
    BuildRow,
    Cuda,
    GpuTargets,
    Release,
    builds,
    cuda_of,
    gpu_targets,
    releases,
    tegra,
)

__all__ = [
    "REFERENCE",
    "BuildRow",
    "Cuda",
    "GpuTargets",
    "Release",
    "builds",
    "cuda_of",
    "gpu_targets",
    "releases",
    "tegra",
]
