"""NVIDIA's own Python module against a simulated NVML, on machines that are simulated as well."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machine_hosts import changed, h100
from simulated_nvml.library import GEFORCE, build, compiler, scenario
from simulated_nvml.tree import Tree, sound

import torchdeck
from torchdeck.machine.facts import Driver, Facts, Gpu, Missing, Nvidia
from torchdeck.machine.facts.nvidia import Clocks, Ecc, Fabric, Mig, NvidiaHost, PcieLink, Processes
from torchdeck.machine.judge import judge
from torchdeck.machine.records import Finding

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

# Gathers in a process of its own, as pynvml keeps the library that it has loaded.
_TREE = """
import pathlib, sys
import msgspec
from torchdeck.machine.probes import nvml, nvidia_host
root = pathlib.Path(sys.argv[1])
nvml._ROOT, nvml._PCI, nvml._DEV = root, root / "sys/bus/pci/devices", root / "dev"
nvml._PROC = root / "proc/driver/nvidia/version"
nvml._TIMEOUT_S = 2.0
log = root / "dmesg"
nvidia_host.read_kernel_log = lambda: log.read_text() if log.exists() else nvidia_host.Missing(reason="not root")
"""
_GATHER = (
    _TREE
    + """
sys.stdout.buffer.write(msgspec.json.encode(nvml.gather_nvidia()))
"""
)
_DOCTOR = (
    _TREE
    + """
from torchdeck.cli import main
sys.argv = ["torchdeck", "doctor", *sys.argv[2:]]
sys.exit(main())
"""
)


def environment(folder: Path, text: str, *, library: Path | None) -> dict[str, str]:
    """Return the variables under which the loader finds the simulated library, and it its scenario."""
    file = folder / "scenario.txt"
    file.write_text(text)
    env = {**os.environ, "PYTHONPATH": str(Path(torchdeck.__file__).parent.parent), "SIMULATED_NVML": str(file)}
    return {**env, "LD_LIBRARY_PATH": str(library) if library else ""}


def gathered(tree: Tree, text: str, *, old_driver: bool = False) -> Nvidia:
    env = environment(tree.root, text, library=build(old_driver=old_driver))
    done = subprocess.run(
        [sys.executable, "-c", _GATHER, str(tree.root)], env=env, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    nvidia = msgspec.json.decode(done.stdout, type=Nvidia)
    # The tests' loader path stands for the machine's own.
    assert isinstance(nvidia.host, NvidiaHost)
    return nvidia


def judged(nvidia: Nvidia, container: str = "") -> list[Finding]:
    facts: Facts = changed(changed(h100(), "nvidia", nvidia), "engines", None)
    return judge(changed(facts, "system.container", container))


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def one(nvidia: Nvidia, index: int = 0) -> Gpu:
    assert not isinstance(nvidia.gpus, Missing)
    return nvidia.gpus[index]


def test_eight_sound_gpus_are_described_in_full_and_give_no_finding(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path).switches().process(77, "nv-fabricmanager"), scenario())
    assert nvidia.nvml == "success"
    assert nvidia.driver == Driver(version="550.54.15", cuda="12.4", source="NVML")
    assert not isinstance(nvidia.gpus, Missing)
    assert [gpu.index for gpu in nvidia.gpus] == list(range(8))
    assert nvidia.gpus[3] == Gpu(
        index=3, name="SIMULATED NVIDIA H100 80GB HBM3", cc=(9, 0), memory_bytes=81559 << 20, pci="0000:13:00.0",
        memory_used_bytes=551 << 20, persistence=True, compute_mode="default",
        mig=Mig(enabled=False, pending=False, num_instances=0),
        ecc=Ecc(enabled=True, num_uncorrected_volatile=0, num_uncorrected_aggregate=0, retirement_pending=None,
                remap_pending=False, remap_failed=False),
        clocks=Clocks(sm_mhz=1980, sm_max_mhz=1980, reasons=("gpu-idle",)), temperature_c=31, power_watts=70.3,
        power_limit_watts=700.0, pcie=PcieLink(generation=5, width=16, generation_max=5, width_max=16),
        processes=Processes(num=0, memory_bytes=0), fabric=Fabric(state="completed", status=0, faults=()),
        num_nvlinks=18,
    )  # fmt: skip
    assert judged(nvidia) == []


def test_what_a_card_does_not_have_is_none_and_not_missing(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 1), scenario(1, GEFORCE))
    gpu = one(nvidia)
    assert (gpu.ecc, gpu.mig, gpu.fabric, gpu.num_nvlinks) == (None, None, None, None)
    assert judged(nvidia) == []


def test_an_old_driver_without_the_newer_functions_is_asked_in_the_older_way(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 2), scenario(2), old_driver=True)
    gpu = one(nvidia)
    assert isinstance(gpu.clocks, Clocks)
    assert gpu.clocks.reasons == ("gpu-idle",)
    assert gpu.fabric == Fabric(state="completed", status=0, faults=())
    assert judged(nvidia) == []


def test_a_gpu_that_is_lost_is_named_and_the_others_are_still_described(tmp_path: Path) -> None:
    tree = sound(tmp_path)
    tree.write("dmesg", "[1.0] NVRM: Xid (PCI:0000:15:00): 79, pid='<unknown>', GPU has fallen off the bus.\n")
    nvidia = gathered(tree, scenario(gpu5="fault error 15", gpu6="handle error 15"))
    assert [one(nvidia, index).fault for index in (4, 5, 6, 7)] == [None, "gpu-is-lost", "gpu-is-lost", None]
    found = judged(nvidia)
    assert rules(found) == ["gpu-off-bus", "gpu-off-bus"]
    assert {finding.severity for finding in found} == {"error"}
    assert "GPU 5" in found[0].title
    assert isinstance(nvidia.host, NvidiaHost)
    assert not isinstance(nvidia.host.xids, Missing)


def test_a_gpu_that_the_bus_has_and_the_driver_does_not_show_is_open_until_the_log_names_it(tmp_path: Path) -> None:
    tree = sound(tmp_path)
    (found,) = judged(gathered(tree, scenario(7)))
    assert (found.rule, found.severity) == ("gpu-off-bus", "unknown")
    assert "0000:17:00.0" in found.title
    tree.write("dmesg", "[1.0] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n")
    (found,) = judged(gathered(tree, scenario(7)))
    assert (found.rule, found.severity) == ("gpu-off-bus", "error")


@pytest.mark.parametrize(
    ("line", "rule", "severity", "word"),
    [
        ("reasons 0x20", "gpu-thermal-throttle", "warning", "hot"),
        ("reasons 0x48; temperature 92; clock 345", "gpu-thermal-throttle", "warning", "hot"),
        ("reasons 0x88", "gpu-power-brake", "warning", "clocks"),
        ("reasons 0x8", "gpu-power-brake", "warning", "clocks"),
        ("rows 0 1 1 0", "gpu-ecc-fault", "error", "reset"),
        ("rows 0 9 0 1", "gpu-ecc-fault", "error", "beyond repair"),
        ("retire_pending 1", "gpu-ecc-fault", "error", "reset"),
        ("ecc_volatile 3", "gpu-ecc-fault", "warning", "3 memory errors"),
        ("fault error 16", "gpu-ecc-fault", "error", "reset"),
        ("compute_mode 2", "gpu-exclusive-mode", "error", "no process"),
        ("compute_mode 3", "gpu-exclusive-mode", "info", "one process"),
        ("compute_mode 3; processes 1 900", "gpu-exclusive-mode", "error", "has one"),
        ("memory 81559 60000; processes 2 29000", "gpu-memory-held-by-other-process", "warning", "58.6 GiB"),
        ("mig 1 1; mig_instances 0", "mig-no-instances", "error", "no instance"),
        ("fabric 1 0 0", "fabric-manager-not-running", "error", "fabric manager"),
        ("fabric 2 0 0", "nvls-fabric-not-ready", "warning", "not sound"),
        ("fabric 3 0 0x10", "nvls-fabric-not-ready", "warning", "not sound"),
        ("cc 3 0", "arch-below-minimum", "warning", "older"),
        ("handle error 8", "gpu-off-bus", "error", "insufficient-power"),
    ],
)
def test_one_thing_wrong_with_one_of_eight_gives_one_finding_that_names_it(
    tmp_path: Path, line: str, rule: str, severity: str, word: str
) -> None:
    found = judged(gathered(sound(tmp_path), scenario(gpu2=line)))
    assert rules(found) == [rule]
    assert found[0].severity == severity
    assert "GPU 2" in found[0].title
    assert word in found[0].title
    assert found[0].evidence
    assert found[0].mend


def test_power_cap_and_chosen_clocks_are_no_fault(tmp_path: Path) -> None:
    assert judged(gathered(sound(tmp_path), scenario(gpu0="reasons 0x4", gpu1="reasons 0x2"))) == []


def test_eight_hot_gpus_are_one_finding(tmp_path: Path) -> None:
    found = judged(gathered(sound(tmp_path), scenario() + "set * reasons 0x40\n"))
    assert rules(found) == ["gpu-thermal-throttle"]
    assert len(found[0].evidence) == 8


def test_a_slice_of_a_split_gpu_is_fine(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 1), scenario(1, gpu0="mig 1 1; mig_instances 3"))
    assert one(nvidia).mig == Mig(enabled=True, pending=True, num_instances=3)
    assert judged(nvidia) == []


def test_processes_whose_memory_is_not_told_are_counted_all_the_same(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 1), scenario(1, gpu0="processes 3 4294967295"))
    assert one(nvidia).processes == Processes(num=3, memory_bytes=None)


@pytest.mark.parametrize("key", ["reasons", "rows", "compute_mode", "memory", "mig", "mig_instances", "fabric", "cc"])
def test_a_value_that_nvml_refuses_is_not_known_and_never_fine(tmp_path: Path, key: str) -> None:
    line = f"{key} error 4" if key != "mig_instances" else "mig 1 1; mig_instances 0"
    found = judged(gathered(sound(tmp_path), scenario(gpu1=line)))
    assert found
    assert {finding.severity for finding in found} == ({"unknown"} if key != "mig_instances" else {"error"})
    assert "GPU 1" in found[0].title


def test_no_driver_and_no_gpu_is_silent_even_where_the_library_is_installed(tmp_path: Path) -> None:
    nvidia = gathered(Tree(tmp_path).library().kernel(), scenario(init="hang"))
    assert nvidia.nvml == "not-asked"
    assert (nvidia.driver, nvidia.gpus) == (None, ())
    assert judged(nvidia) == []


def test_a_gpu_without_a_loaded_driver_is_told_from_the_files(tmp_path: Path) -> None:
    nvidia = gathered(Tree(tmp_path).library().kernel(module=None).gpus(1, None), scenario(init="error 9"))
    assert nvidia.nvml == "driver-not-loaded"
    assert (nvidia.driver, nvidia.gpus) == (None, ())
    assert rules(judged(nvidia)) == ["kernel-module-not-built"]


def test_windows_beneath_linux_has_a_gpu_that_no_bus_shows(tmp_path: Path) -> None:
    nvidia = gathered(Tree(tmp_path).devices("dxg"), scenario(1, GEFORCE))
    assert nvidia.nvml == "success"
    facts = changed(changed(h100(), "nvidia", nvidia), "system.wsl", True)
    assert judge(facts) == []


def test_a_library_of_another_version_than_the_module_asks_for_a_restart(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 1).driver("535.104.05"), scenario(init="error 18"))
    assert nvidia.nvml == "lib-rm-version-mismatch"
    (found,) = judged(nvidia)
    assert (found.rule, found.severity) == ("driver-versions-mixed", "error")
    assert any("550.54.15" in text for text in found.evidence)
    assert found.mend[0].startswith("sudo reboot")


def test_no_permission_is_not_known_and_says_what_is_closed(tmp_path: Path) -> None:
    for text in (scenario(init="error 4"), scenario(1, gpu0="handle error 4")):
        folder = tmp_path / str(len(text))
        folder.mkdir()
        (found,) = judged(gathered(sound(folder, 1), text))
        assert found.severity == "unknown"
        assert "may not open" in found.title
        assert any("usermod" in text for text in found.mend)


def test_an_unknown_error_inside_a_container_is_the_one_after_a_reload_of_systemd(tmp_path: Path) -> None:
    nvidia = gathered(sound(tmp_path, 1), scenario(init="error 999"))
    assert rules(judged(nvidia, "/.dockerenv")) == ["nvml-lost-after-daemon-reload"]
    assert [finding.severity for finding in judged(nvidia)] == ["unknown"]


@pytest.mark.parametrize("line", [{"init": "hang"}, {"gpu3": "temperature hang"}])
def test_a_call_that_hangs_costs_its_time_and_no_more(tmp_path: Path, line: dict[str, str]) -> None:
    started = time.monotonic()
    nvidia = gathered(sound(tmp_path), scenario(8, None, **line))
    assert time.monotonic() - started < 20
    assert nvidia.nvml == "no-answer"
    assert isinstance(nvidia.driver, Driver)
    assert isinstance(nvidia.gpus, Missing)
    (found,) = judged(nvidia)
    assert found.severity == "unknown"
    assert "did not answer" in found.evidence[0]


def test_a_driver_that_shows_no_gpu_is_an_error_on_a_machine_and_a_missing_request_in_a_container(
    tmp_path: Path,
) -> None:
    nvidia = gathered(sound(tmp_path, 1), scenario(0))
    assert rules(judged(nvidia)) == ["gpu-off-bus"]
    assert rules(judged(nvidia, "/.dockerenv")) == ["gpu-not-passed-to-container"]
    job = changed(changed(h100(), "nvidia", nvidia), "variables", {"SLURM_JOB_ID": "1"})
    assert rules(judge(job)) == ["slurm-gpu-not-requested"]


def test_the_doctor_runs_with_it_as_a_user_would(tmp_path: Path) -> None:
    tree = sound(tmp_path / "machine")
    env = environment(tmp_path, scenario(gpu1="reasons 0x40"), library=build())
    argv = [sys.executable, "-c", _DOCTOR, str(tree.root)]
    done = subprocess.run([*argv, "--json"], env=env, capture_output=True, text=True, timeout=60, check=False)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert "gpu-thermal-throttle" in [finding["rule"] for finding in found]
    assert "Traceback" not in done.stderr
    shown = subprocess.run([*argv, "--md"], env=env, capture_output=True, text=True, timeout=60, check=False).stdout
    assert "SIMULATED NVIDIA H100 80GB HBM3" in shown


def _real_library(folder: Path) -> Path:
    """Fetch NVIDIA's library as Debian packages it, from the mirror that this machine already uses."""
    sources = [*Path("/etc/apt/sources.list.d").glob("*"), Path("/etc/apt/sources.list")]
    text = "\n".join(file.read_text(errors="replace") for file in sources if file.is_file())
    found = re.search(r"^(?:URIs:|deb(?: \[.*\])?) *(\S+/debian/?)(?:\n| +)(?:Suites: *)?(\S+)", text, re.MULTILINE)
    if found is None:
        pytest.skip("Debian's package libnvidia-ml1 cannot be had: no Debian mirror is set up")
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb {found[1]} {found[2]} non-free\n")
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists", "Dir::Cache": folder / "cache",
    }  # fmt: skip
    arguments = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    for command in (["update"], ["download", "libnvidia-ml1"]):
        done = subprocess.run(
            ["apt-get", *arguments, *command], cwd=folder, capture_output=True, timeout=120, check=False
        )
    packages = list(folder.glob("libnvidia-ml1_*.deb"))
    if not packages:
        pytest.skip(f"Debian's package libnvidia-ml1 cannot be had: {done.stderr.decode()[-200:]}")
    subprocess.run(["dpkg-deb", "-x", str(packages[0]), str(folder / "real")], check=True, timeout=60)
    return next((folder / "real").rglob("libnvidia-ml.so.1")).parent


@pytest.mark.full
def test_nvidias_own_library_without_a_driver_says_so(tmp_path: Path) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if not any(Path(folder, tool).exists() for folder in os.environ["PATH"].split(":")):
            pytest.skip("Debian's package libnvidia-ml1 cannot be had: no apt-get")
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("needs a machine without an NVIDIA driver")
    (tmp_path / "apt").mkdir()
    library = _real_library(tmp_path / "apt")
    tree = Tree(tmp_path / "machine").kernel(module=None).gpus(1, None)
    env = environment(tree.root, "", library=library)
    made = Path("/dev/nvidiactl")
    before = made.exists()
    done = subprocess.run(
        [sys.executable, "-c", _GATHER, str(tree.root)], env=env, capture_output=True, timeout=60, check=True
    )
    if not before:  # called as root, the library makes it
        made.unlink(missing_ok=True)
    nvidia = msgspec.json.decode(done.stdout, type=Nvidia)
    assert nvidia.library
    assert nvidia.nvml == "driver-not-loaded"
    assert (nvidia.driver, nvidia.gpus) == (None, ())
    assert rules(judged(nvidia)) == ["host-driver-missing"]
