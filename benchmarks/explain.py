"""What ``torchdeck explain`` costs: CPU time and memory of the whole process, beside ``grep -c`` on the same file.

    python benchmarks/explain.py [--large-mb 1024]

Two logs are made: one as a training job writes it (steps, a progress bar, NCCL's INFO lines, warnings), and one that is
dense with words that resemble errors. Each ends in a real failure. All commands take turns in one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FAILURE = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of "
    "the allocated memory 58.00 GiB is allocated by PyTorch, and 19.50 GiB is reserved by PyTorch but unallocated.\n"
)
STEP = "2026-11-02 10:11:{second:02d},{milli:03d} INFO train: epoch 3 step {step} loss {loss:.4f} tokens/s {rate}\n"
NCCL = (
    "node1:{pid}:{pid} [{gpu}] NCCL INFO Channel {channel:02d}/0 : {gpu}[{gpu}] -> {next}[{next}] via P2P/CUMEM/read\n"
)
WARNING = "/opt/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py:624: UserWarning: worker count {step}\n"
DENSE = "INFO checkpoint: loaded shard {step} (error budget 0) from cache; cuda memory allocated 3.1 GB; nccl ok\n"


def make(path: Path, size: int, *, dense: bool) -> None:
    """Write a log of about ``size`` bytes whose last quarter holds the failure."""
    written, step = 0, 0
    with path.open("w") as file:
        failed = False
        while written < size:
            if dense:
                text = DENSE.format(step=step)
            elif step % 50 == 0:
                text = NCCL.format(pid=4000 + step % 8, gpu=step % 8, next=(step + 1) % 8, channel=step % 24)
            elif step % 97 == 0:
                text = WARNING.format(step=step)
            else:
                text = STEP.format(
                    second=step % 60, milli=step % 1000, step=step, loss=5 / (1 + step % 997), rate=91_000 + step % 777
                )
            if not failed and written > 0.75 * size:
                text, failed = text + FAILURE, True
            written += len(text)
            step += 1
            file.write(text)


def run(argv: list[str]) -> tuple[float, float, int]:
    """Return CPU seconds, wall seconds and peak memory in KB of a command."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - started, usage.ru_maxrss


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large-mb", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--torchdeck", default=str(Path(sys.executable).with_name("torchdeck")))
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| log | command | CPU s, median | wall s | peak memory MB | MB/s |")
    print("|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, size_mb, dense in (
            ("training, 1 MB", 1, False),
            ("dense, 1 MB", 1, True),
            (f"training, {arguments.large_mb} MB", arguments.large_mb, False),
        ):
            log = Path(folder) / "log"
            make(log, size_mb * 2**20, dense=dense)
            commands = {
                "explain": [arguments.torchdeck, "explain", "--no-facts", str(log)],
                "grep -c": ["grep", "-c", "CUDA out of memory", str(log)],
            }
            repeats = arguments.repeats if size_mb <= 16 else 1
            taken = {command: [] for command in commands}  # type: dict[str, list[tuple[float, float, int]]]
            for _ in range(repeats):
                for command, argv in commands.items():
                    taken[command].append(run(argv))
            for command, values in taken.items():
                cpu, wall, memory = (statistics.median(value[i] for value in values) for i in range(3))
                rate = size_mb / wall if wall else 0.0
                print(f"| {name} | `{command}` | {cpu:.2f} | {wall:.2f} | {memory / 1024:.0f} | {rate:.0f} |")


if __name__ == "__main__":
    main()
