"""Inductor's cache lies in the temporary folder, not in the home folder, and removing it costs a compile, no more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch._inductor.config


def child() -> None:
    """Compile a function and print its value."""
    # torch tries each vector unit by a compile and an import of itself: seconds that show nothing here.
    torch._inductor.config.cpp.vec_isa_ok = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.arange(1000.0, device=device)
    print(torch.compile(lambda x: (x.sin() * 2 + x.cos()).sum())(x).item())


def run_child(environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "child"], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def num_files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        home, temporary = Path(scratch, "home"), Path(scratch, "tmp")
        home.mkdir()
        temporary.mkdir()
        # A home and a temporary folder of our own, so that the caches of whoever runs this stay as they are.
        environment = {k: v for k, v in os.environ.items() if k not in {"TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"}}
        environment |= {"HOME": str(home), "TMPDIR": str(temporary)}
        value = run_child(environment)

        assert not (home / ".cache" / "torchinductor").exists()
        (cache,) = temporary.glob("torchinductor_*")
        num_made = num_files(cache)
        assert num_made > 0

        printed = "rm -rf ~/.cache/torchinductor/*"
        assert subprocess.run(["sh", "-c", printed], env=environment, check=False).returncode == 0
        assert num_files(cache) == num_made, "the printed command succeeds and clears nothing"

        shutil.rmtree(cache)
        assert run_child(environment) == value
        assert num_files(cache) > 0
        name = cache.name.replace(cache.name.removeprefix("torchinductor_"), "<user>")
    print(f"the cache is <temporary folder>/{name} ({num_made} files); the printed command left it untouched")
    print("removed for real: compiled again, same result")


if __name__ == "__main__":
    child() if sys.argv[1:] == ["child"] else main()
