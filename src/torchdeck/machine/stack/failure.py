"""The error for a machine that no build fits: the nearest miss says what is in the way."""

from __future__ import annotations

from torchdeck.errors import FindingsError, NetworkError, TorchdeckError
from torchdeck.machine.catalogue import REFERENCE
from torchdeck.machine.records import Build, Rejection, StackReport

# The rejections that a person can do something about, the most telling first.
_TELLING = (
    "driver-too-old",
    "arch-newer-than-wheel",
    "arch-dropped-from-wheel",
    "arch-tegra",
    "arch-missing",
    "python-unsupported",
    "needs-driver",
    "leaves-gpu-idle",
    "architecture",
)


def no_stack(report: StackReport) -> TorchdeckError:
    """Return the error of a report that chose nothing."""
    if report.wanted is not None:
        return _out_of_reach(report, report.wanted)
    asked = report.request.get("torch")
    wish = f"no build of torch {asked}" if asked else "no build of torch"
    row = _nearest_miss(report)
    arch, python = report.request.get("arch"), report.request.get("python")
    mend: tuple[str, ...] = ("torchdeck stacks --all",)
    if row is not None and row.code == "python-unsupported":
        mend = ("torchdeck up --python 3.12", *mend)
    elif row is not None and row.code == "driver-too-old":
        mend = ("update the NVIDIA driver, then: torchdeck stacks", "torchdeck stacks --torch 2.6-cpu  (the GPU idles)")
    elif row is not None and (row.code.startswith("arch-") or row.code == "leaves-gpu-idle"):
        mend = ("torchdeck stacks --torch 2.6-cpu  (the GPU idles)", *mend)
    return FindingsError(
        f"{wish} fits this machine",
        rule=row.code if row is not None else "",
        found=f"{row.torch}+{row.variant} {row.reason}" if row is not None else f"Python {python} on {arch}",
        needs="a build for this driver, GPU, Python and processor",
        mend=mend,
    )


def _nearest_miss(report: StackReport) -> Rejection | None:
    """Return the rejection that says most: first this processor's, then the reference's, then by its code."""
    rows = [row for row in report.rejected if row.code in _TELLING]
    arch = report.request.get("arch")
    rows.sort(key=lambda row: (row.arch != arch, row.torch != REFERENCE, _TELLING.index(row.code)))
    return rows[0] if rows else None


def _out_of_reach(report: StackReport, wanted: Build) -> TorchdeckError:
    """Return the error for a build whose index does not answer: with what a newer driver, or no wish, would change."""
    floors = [
        row.reason.split("at least ")[1].split(" ")[0]
        for row in report.rejected
        if row.code == "driver-too-old" and row.index == "pypi"
    ]
    needs, mend = "that index, directly or by proxy (HTTPS_PROXY)", ["export HTTPS_PROXY=http://your-proxy:port"]
    if floors:
        needs += f"; or a driver of at least {min(floors)}"
        mend.append("update the NVIDIA driver, then: torchdeck stacks")
    if report.request.get("torch"):
        mend.append("torchdeck stacks  (what fits without asking for this build)")
    return NetworkError(
        f"torch {wanted.torch}+{wanted.variant} fits, but cannot be had from here",
        rule="index-unreachable",
        found=f"no answer from PyTorch's own index {wanted.index.removeprefix('pytorch/')}; no build on the ordinary "
        "index is what fits or was asked for",
        needs=needs,
        mend=mend,
    )
