"""What a command costs before it does anything: CPU time of torchdeck's start beside torch's own environment report.

    python benchmarks/cli_startup.py --torch-python PATH [--repeats 15] [--markdown]

``PATH`` is a Python with torch in it, such as the one of a deck. All commands take turns in one run, so that a busy
moment of the machine hits them alike; the figure is the median of user + system time of the whole process tree.
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
from pathlib import Path


def cpu_ms(argv: list[str]) -> float:
    """Run a command to its end and return the CPU time that it and its children took, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", required=True, help="a Python that has torch")
    parser.add_argument("--torchdeck", default=str(Path(sys.executable).with_name("torchdeck")))
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "torchdeck --version": [arguments.torchdeck, "--version"],
        "torchdeck --help": [arguments.torchdeck, "--help"],
        "torchdeck stacks --offline": [arguments.torchdeck, "stacks", "--offline"],
        "torchdeck stacks": [arguments.torchdeck, "stacks"],
        "torchdeck doctor": [arguments.torchdeck, "doctor"],
        "torchdeck status": [arguments.torchdeck, "status"],
        "python -m torch.utils.collect_env": [arguments.torch_python, "-m", "torch.utils.collect_env"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for argv in commands.values():  # once unmeasured: files into the page cache, .pyc written
        cpu_ms(argv)
    for number in range(arguments.repeats):
        for name, argv in commands.items():
            if name.startswith("python -m") and number >= 3:
                continue  # 2.5 s each: three are enough
            taken[name].append(cpu_ms(argv))
    reference = statistics.median(taken["python -m torch.utils.collect_env"])
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| command | CPU ms, median | min | max | collect_env takes … times as long |")
    print("|---|---:|---:|---:|---:|")
    for name, values in taken.items():
        median = statistics.median(values)
        print(f"| `{name}` | {median:.0f} | {min(values):.0f} | {max(values):.0f} | {reference / median:.0f} |")


if __name__ == "__main__":
    main()
