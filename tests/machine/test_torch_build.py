"""Reading an installed torch from its files: whole, damaged and strange ones, and the real one of a deck."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_site import PINS, about, elf, package, torch

from torchdeck.machine.facts import Missing, TorchBuild
from torchdeck.machine.facts.python import Library, Wheel
from torchdeck.machine.probes import cuda_libs
from torchdeck.machine.probes.cuda_libs import Places, find_libraries, parse_ldconfig, preloads_of
from torchdeck.machine.probes.elf import parse_constants, parse_dynamic, read_constants, read_dynamic
from torchdeck.machine.probes.python import gather_python
from torchdeck.machine.probes.torch_build import (
    gather_torch_build,
    list_installed,
    parse_info_name,
    parse_metadata,
    parse_targets,
)


def read(*folders: Path, **more: Any) -> TorchBuild:
    found = gather_torch_build(about(*folders, **more))
    assert isinstance(found, TorchBuild)
    return found


def wheels(build: TorchBuild) -> dict[str, Wheel]:
    assert not isinstance(build.wheels, Missing)
    return {wheel.name: wheel for wheel in build.wheels}


def library(build: TorchBuild, soname: str) -> Library:
    assert isinstance(build.libraries, tuple)
    return next(found for found in build.libraries if found.soname == soname)


def test_a_whole_torch_is_read_with_its_pins_its_targets_and_its_limit(tmp_path: Path) -> None:
    build = read(torch(tmp_path))
    assert (build.version, build.cuda, build.hip) == ("2.6.0+cu124", "12.4", None)
    assert build.targets == ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert build.compile_below == "3.14"
    assert build.wheels == tuple(
        Wheel(name=name, wanted=f"=={version}", found=(version,)) for name, version in sorted(PINS.items())
    )


def test_a_cpu_build_has_no_targets_no_libraries_and_asks_for_no_wheels(tmp_path: Path) -> None:
    build = read(torch(tmp_path, "2.6.0+cpu", None))
    assert (build.cuda, build.targets, build.libraries, build.wheels) == (None, None, None, ())


def test_no_torch_is_none_also_where_a_folder_is_absent_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "torch").write_text("")
    assert gather_torch_build(about(tmp_path / "absent", tmp_path)) is None


def test_a_wheel_of_another_version_is_read_with_what_torch_asks_for(tmp_path: Path) -> None:
    build = read(torch(tmp_path, installed={**PINS, "nvidia-cudnn-cu12": "9.5.1.17"}))
    assert wheels(build)["nvidia-cudnn-cu12"] == Wheel(
        name="nvidia-cudnn-cu12", wanted="==9.1.0.70", found=("9.5.1.17",)
    )


def test_a_wheel_that_is_absent_is_one_with_nothing_found(tmp_path: Path) -> None:
    build = read(torch(tmp_path, installed={name: PINS[name] for name in PINS if name != "nvidia-nccl-cu12"}))
    assert wheels(build)["nvidia-nccl-cu12"].found == ()


def test_metadata_that_an_interrupted_removal_left_behind_is_no_package(tmp_path: Path) -> None:
    torch(tmp_path)
    (tmp_path / "nvidia_nccl_cu12-2.21.5.dist-info" / "METADATA").unlink()
    assert wheels(read(tmp_path))["nvidia-nccl-cu12"].found == ()


def test_a_wheel_for_another_cuda_is_one_that_nothing_asks_for(tmp_path: Path) -> None:
    torch(tmp_path)
    package(tmp_path, "nvidia-nccl-cu13", "2.28.9")
    assert wheels(read(tmp_path))["nvidia-nccl-cu13"] == Wheel(name="nvidia-nccl-cu13", wanted=None, found=("2.28.9",))


def test_two_versions_in_one_folder_are_both_read_and_a_second_folder_is_hidden_by_the_first(tmp_path: Path) -> None:
    torch(tmp_path / "a")
    package(tmp_path / "a", "nvidia-cudnn-cu12", "9.5.1.17")
    package(tmp_path / "b", "nvidia-nccl-cu12", "2.18.1")
    found = wheels(read(tmp_path / "a", tmp_path / "b"))
    assert found["nvidia-cudnn-cu12"].found == ("9.1.0.70", "9.5.1.17")
    assert found["nvidia-nccl-cu12"].found == ("2.21.5",)


def test_pins_through_cuda_toolkit_are_followed_for_the_extras_that_torch_names(tmp_path: Path) -> None:
    torch(
        tmp_path, "2.15.0+cu132", "13.2", installed={},
        requires=[
            'cuda-toolkit[cudart,nvrtc]==13.2.2; platform_system == "Linux"',
            'nvidia-cudnn-cu13==9.26.0.51; platform_system == "Linux"',
            'triton~=3.9.0; platform_system == "Linux" and python_version < "3.16"',
            'nvidia-nccl-cu13==2.30.7; platform_system == "Windows"',
        ],
    )  # fmt: skip
    package(
        tmp_path, "cuda-toolkit", "13.2.2.0",
        [f"nvidia-{name}==13.2.1.*; (sys_platform == 'linux') and extra == '{extra}'"
         for name, extra in (("cuda-runtime", "cudart"), ("cuda-nvrtc", "nvrtc"), ("cublas", "cublas"))],
    )  # fmt: skip
    assert {name: wheel.wanted for name, wheel in wheels(read(tmp_path)).items()} == {
        "cuda-toolkit": "==13.2.2", "nvidia-cuda-nvrtc": "==13.2.1.*", "nvidia-cuda-runtime": "==13.2.1.*",
        "nvidia-cudnn-cu13": "==9.26.0.51", "triton": "~=3.9.0",
    }  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage" * 50, b"<html>\n\nName: x"])
def test_damaged_metadata_of_torch_makes_its_wheels_missing_and_nothing_else(tmp_path: Path, content: bytes) -> None:
    torch(tmp_path)
    (tmp_path / "torch-2.6.0.dist-info" / "METADATA").write_bytes(content)
    build = read(tmp_path)
    if b"Name:" not in content:
        assert isinstance(build.wheels, Missing)
        assert "damaged" in build.wheels.reason
    assert build.targets


def test_a_single_damaged_requirement_line_does_not_hide_the_others(tmp_path: Path) -> None:
    build = read(torch(tmp_path, requires=["nvidia-cudnn-cu12 (==", "nvidia-nccl-cu12 (==2.21.5)", "; ; ;"]))
    assert wheels(build)["nvidia-nccl-cu12"].wanted == "==2.21.5"
    assert wheels(build)["nvidia-cudnn-cu12"].wanted is None


def test_huge_metadata_is_read_in_its_head_only_and_quickly(tmp_path: Path) -> None:
    torch(tmp_path)
    with (tmp_path / "torch-2.6.0.dist-info" / "METADATA").open("ab") as file:
        file.write(b"Requires-Dist: nvidia-nccl-cu12 (==1)\n" * 2_000_000)
    started = time.process_time()
    assert wheels(read(tmp_path))["nvidia-nccl-cu12"].wanted == "==2.21.5"
    assert time.process_time() - started < 1.0


def test_files_that_cannot_be_read_are_missing_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch(tmp_path)
    real = os.open

    def refuse(path: Any, *more: Any, **keys: Any) -> int:
        if str(path).startswith(str(tmp_path)) and "version.py" not in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *more, **keys)

    monkeypatch.setattr(os, "open", refuse)
    build = read(tmp_path)
    assert isinstance(build.wheels, Missing)
    assert isinstance(build.targets, Missing)
    assert isinstance(build.compile_below, Missing)
    assert "Permission denied" in build.wheels.reason


def test_a_version_file_that_is_no_file_or_says_nothing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a/torch/version.py").mkdir(parents=True)
    (tmp_path / "b/torch").mkdir(parents=True)
    (tmp_path / "b/torch/version.py").write_text("# nothing\n")
    (tmp_path / "c/torch").mkdir(parents=True)
    os.mkfifo(tmp_path / "c/torch/version.py")
    for name in "abc":
        assert isinstance(gather_torch_build(about(tmp_path / name)), Missing), name


def test_packages_behind_links_are_read_as_those_in_the_folder(tmp_path: Path) -> None:
    torch(tmp_path / "store")
    site = tmp_path / "site"
    site.mkdir()
    for entry in (tmp_path / "store").iterdir():
        (site / entry.name).symlink_to(entry)
    (site / "numpy-2.1.0.dist-info").symlink_to(tmp_path / "nowhere")
    build = read(site)
    assert all(wheel.found for wheel in wheels(build).values())
    assert build.companions == tuple(found for found in read(tmp_path / "store").companions)  # type: ignore[union-attr]


def test_companions_are_read_with_their_build_and_with_what_they_ask_of_torch(tmp_path: Path) -> None:
    torch(tmp_path)
    package(tmp_path, "torchvision", "0.21.0", ["numpy", "torch (==2.6.0)", "gdown (>=4.7.3) ; extra == 'gdown'"])
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "version.py").write_text("__version__ = '0.21.0+cu124'\n")
    package(tmp_path, "numpy", "2.1.0")
    companions = read(tmp_path).companions
    assert not isinstance(companions, Missing)
    found = {companion.name: companion for companion in companions}
    assert (found["torchvision"].version, found["torchvision"].wants_torch) == ("0.21.0+cu124", "==2.6.0")
    assert found["numpy"].version == "2.1.0"


def test_conda_tells_its_builds_by_the_names_of_its_files(tmp_path: Path) -> None:
    site = torch(tmp_path / "lib/python3.11/site-packages")
    shutil.move(site / "torch-2.6.0.dist-info", site / "torch-2.6.0-py3.11.egg-info")
    (tmp_path / "conda-meta").mkdir()
    for name in ("pytorch-2.5.1-py3.11_cuda12.4_cudnn9.1.0_0.json", "mkl-2025.0.0-hacee8c2_941.json", "history"):
        (tmp_path / "conda-meta" / name).write_text("{}")
    build = read(site, prefix=str(tmp_path))
    assert not isinstance(build.companions, Missing)
    assert {(found.name, found.version, found.build) for found in build.companions} >= {
        ("mkl", "2025.0.0", "hacee8c2_941"), ("torch", "2.5.1", "py3.11_cuda12.4_cudnn9.1.0_0")
    }  # fmt: skip
    assert all(wheel.wanted is None for wheel in wheels(build).values())


# The way of the loader.


def _places(*folders: Path, preload: tuple[str, ...] = (), **cache: tuple[str, ...]) -> Places:
    return Places(preload, tuple(map(str, folders)), {name.replace("__", "."): paths for name, paths in cache.items()})


def _found(site: Path, places: Places, *preloads: str) -> dict[str, Library]:
    return {found.soname: found for found in find_libraries(site, places, preloads)}


def _copies(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(elf())
    return folder


ALL = ("libcusparse.so.12", "libnvJitLink.so.12", "libcudnn.so.9", "libcudnn_graph.so.9", "libnccl.so.2")


def test_without_other_copies_each_library_is_torchs_own(tmp_path: Path) -> None:
    found = _found(torch(tmp_path), _places())
    assert all(library.path == library.own is not None for library in found.values())
    assert found["libcudnn.so.9"].via == "rpath"
    assert found["libcudnn_ops.so.9"].via == "runpath"


def test_ld_library_path_replaces_what_nvidias_libraries_ask_for_and_not_what_torch_asks_for(tmp_path: Path) -> None:
    found = _found(torch(tmp_path / "site"), _places(_copies(tmp_path / "other", *ALL)))
    taken = {name for name, library in found.items() if library.via == "LD_LIBRARY_PATH"}
    assert taken == {"libnvJitLink.so.12", "libcudnn_graph.so.9"}
    assert found["libnvJitLink.so.12"].needed_by == "libcusparse.so.12"


def test_what_torch_loads_itself_beforehand_cannot_be_replaced(tmp_path: Path) -> None:
    found = _found(torch(tmp_path / "site"), _places(_copies(tmp_path / "other", *ALL)), "nvjitlink")
    assert (found["libnvJitLink.so.12"].via, found["libcudnn_graph.so.9"].via) == ("torch", "LD_LIBRARY_PATH")


def test_ld_preload_replaces_everything_of_its_name(tmp_path: Path) -> None:
    other = _copies(tmp_path / "other", "libnccl.so.2")
    found = _found(torch(tmp_path / "site"), _places(preload=(str(other / "libnccl.so.2"),)))
    assert found["libnccl.so.2"].via == "LD_PRELOAD"


def test_a_library_whose_wheel_is_gone_is_taken_from_the_cache_or_from_nowhere(tmp_path: Path) -> None:
    torch(tmp_path / "site")
    shutil.rmtree(tmp_path / "site/nvidia/nccl")
    other = _copies(tmp_path / "other", "libnccl.so.2.18.1")
    (other / "libnccl.so.2").symlink_to("libnccl.so.2.18.1")
    assert (_found(tmp_path / "site", _places())["libnccl.so.2"].path,) == (None,)
    cached = _found(tmp_path / "site", _places(libnccl__so__2=(str(other / "libnccl.so.2"),)))["libnccl.so.2"]
    assert (cached.via, cached.own, cached.version) == ("ld.so.cache", None, "2.18.1")


def test_ld_library_path_with_the_wheels_own_folders_replaces_nothing(tmp_path: Path) -> None:
    site = torch(tmp_path / "site")
    (tmp_path / "link").symlink_to(site / "nvidia/cudnn/lib")
    graph = _found(site, _places(tmp_path / "link"))["libcudnn_graph.so.9"]
    assert graph.path == graph.own


def test_libraries_that_ask_for_each_other_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    site = torch(tmp_path)
    (site / "nvidia/nccl/lib/libnccl.so.2").write_bytes(elf(["libcudnn.so.9", "libnccl.so.2"]))
    (site / "nvidia/cudnn/lib/libcudnn.so.9").write_bytes(elf(["libnccl.so.2"], runpath="$ORIGIN"))
    assert "libcudnn_ops.so.9" in _found(site, _places())


def test_what_torch_loads_itself_is_read_from_its_own_code() -> None:
    assert preloads_of('_preload_cuda_deps("cuda_nvrtc", "x")\n _preload_cuda_deps(lib_folder, lib_name)') == (
        "cuda_nvrtc",
    )
    assert preloads_of("def _preload_cuda_deps(err: OSError | None = None):\n            _preload_cuda_deps()\n") == (
        "*",
    )


# The parsers.

_LDCONFIG = """560 libs found in cache `/etc/ld.so.cache'
\tlibcudart.so.13 (libc6,x86-64) => /usr/local/cuda-13.0/lib/libcudart.so.13
\tlibnccl.so.2 (libc6) => /usr/lib/i386-linux-gnu/libnccl.so.2
\tlibnccl.so.2 (libc6,x86-64, OS ABI: Linux 3.2.0) => /opt/with space/libnccl.so.2
\tlibnccl.so.2 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnccl.so.2
\tlibcuda.so.1 (libc6,AArch64) => /usr/lib/aarch64-linux-gnu/libcuda.so.1
\tlibc.so.6 (libc6,x32) => /libx32/libc.so.6
Cache generated by: ldconfig (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36
"""


def test_the_cache_is_read_in_its_order_and_32_bit_libraries_are_left_out() -> None:
    assert parse_ldconfig(_LDCONFIG) == {
        "libcudart.so.13": ("/usr/local/cuda-13.0/lib/libcudart.so.13",),
        "libnccl.so.2": ("/opt/with space/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"),
        "libcuda.so.1": ("/usr/lib/aarch64-linux-gnu/libcuda.so.1",),
    }


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400) | st.text(alphabet="lib.so(),64=> /\n\tx", max_size=400))
def test_no_output_of_ldconfig_makes_its_reading_fail(text: str) -> None:
    for name, paths in parse_ldconfig(text).items():
        assert name
        assert all(path.startswith("/") for path in paths)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 700), st.binary(min_size=1, max_size=16))
@example(54, b"\xff\xff\xff\xff")
@example(32, b"\xff" * 8)
@example(40, b"\xff" * 8)
def test_no_damage_to_a_library_makes_its_reading_fail(at: int, damage: bytes) -> None:
    whole = elf(["libnccl.so.2"], rpath="$ORIGIN", runpath="$ORIGIN/x", constants=b"sm_50 sm_60\0")
    data = whole[:at] + damage + whole[at + len(damage) :]
    for content in (data, whole[:at], damage):
        parse_dynamic(lambda offset, size, content=content: _slice(content, offset, size))  # type: ignore[misc]
        parse_constants(lambda offset, size, content=content: _slice(content, offset, size))  # type: ignore[misc]


def _slice(content: bytes, offset: int, size: int) -> bytes:
    """Read as ``os.pread`` does, which refuses places that are no offsets in a file."""
    if not 0 <= offset < 2**63:
        raise OverflowError
    return content[offset : offset + size]


def test_a_library_of_other_kinds_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("INPUT(libcudart.so)")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "text.so"):
        assert read_dynamic(path) is None
        assert read_constants(path) is None


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
@example("a-1.dist-info")
def test_any_name_of_a_folder_is_a_package_or_not(name: str) -> None:
    parsed = parse_info_name(name)
    if parsed is not None:
        assert all(parsed)
        assert name.endswith("-info")


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("nvidia_cudnn_cu12-9.1.0.70.dist-info", ("nvidia-cudnn-cu12", "9.1.0.70")),
        ("torch-2.5.1-py3.11.egg-info", ("torch", "2.5.1")),
        ("~orch-2.6.0.dist-info", ("~orch", "2.6.0")),
        ("torch.dist-info", None),
        ("torch-2.6.0", None),
        (".dist-info", None),
    ],
)
def test_names_and_versions_are_told_by_the_folder(name: str, parsed: tuple[str, str] | None) -> None:
    assert parse_info_name(name) == parsed


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_no_metadata_makes_its_reading_fail_and_the_description_is_never_read(text: str) -> None:
    assert "secret" not in parse_metadata("Name: x\n\n" + text + "\nRequires-Dist: secret\n")
    parse_metadata(text)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300) | st.text(alphabet="sm_compute 0123456789a\0", max_size=200).map(str.encode))
def test_gpu_targets_are_words_of_their_kind_in_any_content(data: bytes) -> None:
    for target in parse_targets(data):
        assert target.startswith(("sm_", "compute_"))


def test_the_longest_list_of_targets_is_the_one_of_the_build() -> None:
    assert parse_targets(b"\0sm_50 sm_60\0sm_75 sm_80 sm_90a compute_120\0") == (
        "sm_75",
        "sm_80",
        "sm_90a",
        "compute_120",
    )
    assert parse_targets(b"sm_90") == ()


def test_listing_folders_that_are_not_there_gives_nothing(tmp_path: Path) -> None:
    assert list_installed([tmp_path / "absent"]) == ()


# The real one.

_ASK = """
import json, sys, importlib.metadata as m, torch, torchvision
maps = sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda,
                  "targets": torch._C._cuda_getArchFlags().split() if torch.version.cuda else None,
                  "torchvision": torchvision.__version__,
                  "wheels": {d.name.lower().replace("_", "-"): d.version for d in m.distributions()}, "maps": maps}))
"""


def _says(python: Path, **variables: str) -> dict[str, Any]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "PYTHON"))}
    done = subprocess.run(
        [python, "-I", "-c", _ASK], env={**env, **variables}, capture_output=True, text=True, timeout=300, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _build_of(python: Path) -> TorchBuild:
    facts = gather_python(python)
    assert not isinstance(facts, Missing)
    assert isinstance(facts.torch, TorchBuild)
    return facts.torch


@pytest.mark.deck
def test_what_the_files_say_is_what_torch_says_when_it_is_imported(
    deck_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        monkeypatch.delenv(variable, raising=False)
    said, build = _says(deck_python), _build_of(deck_python)
    assert (build.version, build.cuda) == (said["version"], said["cuda"])
    assert (None if build.targets is None else list(build.targets)) == said["targets"]  # type: ignore[arg-type]
    assert not isinstance(build.companions, Missing)
    assert {package.name: package.version for package in build.companions}["torchvision"] == said["torchvision"]
    for wheel in wheels(build).values():
        assert wheel.found == (said["wheels"][wheel.name],)
        assert wheel.wanted == f"=={wheel.found[0]}"
    for found in build.libraries if isinstance(build.libraries, tuple) else ():
        assert found.path == found.own
    _compare_with_loaded(build, said["maps"])


def _compare_with_loaded(build: TorchBuild, maps: list[str]) -> None:
    """Hold the libraries that were foreseen against those that a process has really loaded."""
    loaded = {Path(path).name: os.path.realpath(path) for path in maps}
    foreseen = {found.soname: found for found in build.libraries} if isinstance(build.libraries, tuple) else {}
    both = set(loaded) & set(foreseen)
    assert build.cuda is None or {"libcudart.so.12", "libcudnn.so.9", "libnccl.so.2"} <= both
    for name in both:
        path = foreseen[name].path
        assert path is not None
        assert os.path.realpath(Path(path).expanduser()) == loaded[name], foreseen[name]


@pytest.mark.deck
def test_the_real_loader_takes_from_ld_library_path_what_was_foreseen(
    deck_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    build = _build_of(deck_python)
    if build.cuda is None:
        pytest.skip("needs a CUDA build of torch")
    for soname in ("libnvJitLink.so.12", "libnccl.so.2", "libcublasLt.so.12"):
        own = library(build, soname).own
        assert own is not None
        shutil.copy(Path(own).expanduser(), tmp_path / soname)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    _compare_with_loaded(_build_of(deck_python), _says(deck_python, LD_LIBRARY_PATH=str(tmp_path))["maps"])


@pytest.mark.deck
def test_the_real_cudnn_takes_its_parts_from_ld_library_path(
    deck_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    build = _build_of(deck_python)
    if build.cuda is None:
        pytest.skip("needs a CUDA build of torch")
    part, whole = library(build, "libcudnn_graph.so.9").own, library(build, "libcudnn.so.9").own
    assert part is not None
    assert whole is not None
    shutil.copy(Path(part).expanduser(), tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    foreseen = library(_build_of(deck_python), "libcudnn_graph.so.9")
    program = (
        f"import ctypes, torch; d = ctypes.c_void_p(); c = ctypes.CDLL({str(Path(whole).expanduser())!r});"
        "c.cudnnBackendCreateDescriptor(0, ctypes.byref(d));"
        "print({line.split()[-1] for line in open('/proc/self/maps') if 'libcudnn_graph' in line}.pop())"
    )
    done = subprocess.run([deck_python, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert foreseen.via == "LD_LIBRARY_PATH"
    assert foreseen.path == done.stdout.strip() == str(tmp_path / "libcudnn_graph.so.9")


@pytest.mark.deck
def test_the_real_torch_is_read_in_little_time(deck_python: Path) -> None:
    from torchdeck.machine.probes import python as room

    asked = room._ask(deck_python)
    assert not isinstance(asked, Missing)
    used = []
    for _ in range(5):
        started = time.process_time()
        gather_torch_build(asked)
        used.append(time.process_time() - started)
    assert min(used) < 0.06


def test_a_cache_that_cannot_be_read_makes_the_libraries_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_libs, "_LDCONFIG", ("/nonexistent/ldconfig",))
    build = read(torch(tmp_path))
    assert isinstance(build.libraries, Missing)
    assert "127" in build.libraries.reason
