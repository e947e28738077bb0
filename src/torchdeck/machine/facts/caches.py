"""The caches that torch, Triton, Hugging Face and the installers fill."""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing


class Cache(Fact, frozen=True, kw_only=True):
    """One cache.

    Args:
        path: Its folder, the home folder folded to ``~`` and the user's name to ``$USER``.
        variable: The environment variable that put it there; None at its usual place.
        exists: Whether it is there.
        size_bytes: What its files take, a lower bound where counting was ended early; None where it is not there.
        complete: Whether all of it was counted.
        mine: Whether the folder belongs to the user who runs this; None where it is not there.
        writable: Whether this user may write in it, or make it.
        owner_uid: The number of the user whom it belongs to; None where it is not there.
        num_locked: Folders in it, among those counted, that belong to somebody else and that this user may not write.
    """

    path: str
    variable: str | None
    exists: bool
    size_bytes: int | None
    complete: bool
    mine: bool | None
    writable: bool
    owner_uid: int | None
    num_locked: int


class Caches(Fact, frozen=True, kw_only=True):
    """The caches.

    Args:
        inductor: Code that ``torch.compile`` made.
        triton: Kernels that Triton compiled.
        huggingface: Models and data sets.
        torch_hub: Models and weights of ``torch.hub`` and torchvision.
        pip: Downloads of pip.
        uv: Downloads and unpacked packages of uv.
    """

    inductor: Cache | Missing
    triton: Cache | Missing
    huggingface: Cache | Missing
    torch_hub: Cache | Missing
    pip: Cache | Missing
    uv: Cache | Missing
