"""A Python, and the torch in it: what its files say, without running any of it.

``None`` stands for *there is none* or *does not apply*, ``Missing`` for *could not be known*. A file that an older
torchdeck saved lacks the later fields; they are then ``NOT_GATHERED``, on which no rule speaks.
"""

from __future__ import annotations

from torchdeck.machine.facts.missing import Fact, Missing
from torchdeck.machine.facts.nvidia import NOT_GATHERED


class Package(Fact, frozen=True, kw_only=True):
    """An installed package that has to fit torch.

    Args:
        name: Its normalized name: ``torchvision``, ``torchaudio``, ``triton``, ``pytorch-triton``, ``numpy``, ``mkl``.
        version: From its ``version.py`` where there is one (with ``+cu124``), else from the name of its folder.
        wants_torch: What its own metadata asks of torch, such as ``==2.6.0``; None where it asks nothing.
        build: conda's build text, such as ``py3.11_cuda12.4_cudnn9.1.0_0``; None where conda did not install it.
    """

    name: str
    version: str
    wants_torch: str | None = None
    build: str | None = None


class Wheel(Fact, frozen=True, kw_only=True):
    """A package of CUDA libraries, or Triton, that torch asks for, or that is installed.

    Args:
        name: Its normalized name, such as ``nvidia-cudnn-cu12``.
        wanted: What the metadata of torch (or of ``cuda-toolkit``, for torch) asks: ``==9.1.0.70``; empty for any
            version; None where nothing asks for it.
        found: The installed versions: empty where it is absent, several where remains of another one are left.
    """

    name: str
    wanted: str | None
    found: tuple[str, ...]


class Library(Fact, frozen=True, kw_only=True):
    """A CUDA library as the loader would take it for this torch, from what the files say.

    Args:
        soname: The name that it is asked for by, such as ``libcudnn_ops.so.9``.
        needed_by: File name of the first that asks.
        path: What would be loaded, the home folder folded to ``~``; None where it is found nowhere.
        via: By which of the loader's ways: ``LD_PRELOAD``, ``torch`` (which loads it before anything asks), ``rpath``,
            ``LD_LIBRARY_PATH``, ``runpath``, ``ld.so.cache``; empty where it is found nowhere.
        own: The copy that came with torch, or with its wheels; None where there is none.
        version: The version in the name of the file that the links end at, such as ``9.5.1``; None without one.
    """

    soname: str
    needed_by: str
    path: str | None
    via: str
    own: str | None
    version: str | None


class TorchBuild(Fact, frozen=True, kw_only=True):
    """An installed torch, read from its files, without importing it.

    Args:
        version: Such as ``2.6.0+cu124``.
        cuda: Such as ``12.4``; None for a build without CUDA.
        hip: AMD's counterpart, such as ``6.2.41133``; None for a build without it.
        targets: The GPU code in it, such as ``sm_90`` and ``compute_120``, from the text that
            ``torch.cuda.get_arch_list()`` returns; None for a build without CUDA.
        wheels: The packages that it asks for and those installed; none for a build that has its libraries inside.
        companions: The installed packages that have to fit it.
        libraries: The CUDA libraries that would be loaded; None for a build without CUDA.
        compile_below: The first Python under which its ``torch.compile`` refuses to work, such as ``3.14``; None where
            its code names no limit.
    """

    version: str
    cuda: str | None
    hip: str | None = None
    targets: tuple[str, ...] | Missing | None = NOT_GATHERED
    wheels: tuple[Wheel, ...] | Missing = NOT_GATHERED
    companions: tuple[Package, ...] | Missing = NOT_GATHERED
    libraries: tuple[Library, ...] | Missing | None = NOT_GATHERED
    compile_below: str | Missing | None = NOT_GATHERED


class PythonFacts(Fact, frozen=True, kw_only=True):
    """A Python interpreter.

    Args:
        path: Its executable, the home folder folded to ``~``.
        version: Such as ``3.11.7``.
        implementation: ``cpython``.
        headers: Where ``Python.h`` is; None where it is not.
        torch: The torch in its environment; None if there is none.
        deck: Name of the deck whose environment it belongs to; None for any other Python.
    """

    path: str
    version: str
    implementation: str
    headers: str | Missing | None
    torch: TorchBuild | Missing | None
    deck: str | None = None
