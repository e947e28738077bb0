"""Each rule on pins: requirements.txt, pyproject.toml and environment.yml."""

from __future__ import annotations

import pytest
from files.file_cases import INDEX, judged, lines, rules

from torchdeck.errors import UsageError
from torchdeck.machine.files.pins import parse_conda_spec, parse_pin

GOOD = {
    "pinned": """
# torch and what belongs to it
torch==2.6.0
torchvision==0.21.0 ; python_version >= "3.9"
torchaudio==2.6.0
triton==3.2.0
numpy>=2
nvidia-cudnn-cu12==9.1.0.70
-r other.txt
-e .
git+ssh://git@index.example/a/b.git
""",
    "tagged": f"--extra-index-url {INDEX}/cu124\ntorch==2.6.0+cu124\ntorchvision==0.21.0+cu124\n",
    "hashed": "torch==2.6.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\ntorchvision==0.21.0 --hash=sha256:22\n",
    "ranges": "torch>=2.4,<3\ntorchvision>=0.19\nnumpy\n",
    "by marker": """
torch==2.5.1; python_version < "3.10"
torchvision==0.20.1; python_version < "3.10"
torch==2.8.0; python_version >= "3.10"
torchvision==0.23.0; python_version >= "3.10"
torch==1.0.0; sys_platform == "win32"
""",
    "a patch release that is not listed": "torchvision==0.22.0\n",
    "a file": f"torch @ {INDEX}/cu124/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl\n",
    "no torch": "flask\nnumpy>=2\n",
    "no requirement": "???\n<html>\n==\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_sound_requirements_have_no_findings(text: str) -> None:
    assert judged("requirements.txt", text) == []


CASES = [
    ("torchvision-mismatch", "error", 2, "torch==2.6.0\ntorchvision==0.20.1", "torch==2.6.0\ntorchvision==0.21.0"),
    ("torchvision-mismatch", "error", 1, "torchaudio==2.5.1\ntorch==2.6.0", "torchaudio==2.11.0\ntorch==2.12.1"),
    ("torchvision-mismatch", "warning", 2, "torch==2.7.1\ntorchvision==0.22.0", "torch==2.7.0\ntorchvision==0.22.0"),
    ("torchvision-mismatch", "error", 2, "torch==2.7.0\ntorchvision==0.21.0", "torch==2.7.0\ntorchvision>=0.21.0"),
    (
        "torchvision-mismatch",
        "error",
        3,
        f"-i {INDEX}/x\ntorch==2.6.0+cu124\ntorchvision==0.21.0+cu118",
        f"-i {INDEX}/x\ntorch==2.6.0+cu124\ntorchvision==0.21.0",
    ),
    ("torch-release-unknown", "unknown", 1, "torch==2.1.2", "torch==2.4.1"),
    ("torch-release-unknown", "info", 1, "torch==2.5.0", "torch==2.5.*"),
    ("torch-index-missing", "warning", 1, "torch==2.6.0+cu124", f"--find-links {INDEX}\ntorch==2.6.0+cu124"),
    ("torch-build-not-on-index", "error", 2, f"-i {INDEX}/cu124\ntorch==2.7.1", f"-i {INDEX}/cu126\ntorch==2.7.1"),
    (
        "torch-build-not-on-index",
        "error",
        2,
        f"--index-url={INDEX}/cu121\ntorch==2.6.0+cu124",
        f"--index-url={INDEX}/cu124/\ntorch==2.6.0+cu124",
    ),
    ("torch-build-not-on-index", "error", 2, f"-i {INDEX}\ntorch==2.6.0+cu128", f"-i {INDEX}\ntorch==2.7.1+cu128"),
    ("compile-triton-missing", "error", 2, "torch==2.6.0\ntriton==3.1.0", "torch==2.6.0\ntriton>=3.1.0"),
    ("numpy2-abi", "error", 2, "torch==2.2.2\nnumpy>=2.0", "torch==2.3.0\nnumpy>=2.0"),
    ("numpy2-abi", "error", 2, "torch<2.3\nnumpy==2.1.3", "torch<2.4\nnumpy==2.1.3"),
    ("numpy2-abi", "warning", 2, "torch==2.2.2\nnumpy>=1.20", "torch==2.2.2\nnumpy<2"),
    ("numpy2-abi", "warning", 2, "torch~=2.2.0\nnumpy", "torch==2.2.2\nnumpy==1.20.3"),
    (
        "cuda-wheels-mixed",
        "error",
        2,
        "nvidia-cublas-cu12==12.4.5.8\nnvidia-nccl-cu13==2.28.3",
        "nvidia-cublas-cu12==12.4.5.8\nnvidia-ml-py==13.580.65",
    ),
    (
        "cuda-wheels-mixed",
        "warning",
        2,
        "torch==2.11.0\nnvidia-cudnn-cu12==9.1.0.70",
        f"--extra-index-url {INDEX}/cu126\ntorch==2.11.0\nnvidia-cudnn-cu12==9.1.0.70",
    ),
]


@pytest.mark.parametrize(("rule", "severity", "line", "fault", "look_alike"), CASES)
def test_a_fault_is_found_at_its_line_and_what_looks_like_it_is_not(
    rule: str, severity: str, line: int, fault: str, look_alike: str
) -> None:
    found = [finding for finding in judged("requirements.txt", fault) if finding.rule == rule]
    assert [(finding.severity, finding.where) for finding in found] == [(severity, f"requirements.txt:{line}")]
    assert found[0].mend
    assert rule not in rules("requirements.txt", look_alike)


PROJECT = """
[project]
name = "a"
requires-python = ">=3.10"
dependencies = [
  "torch==2.6.0",
  "torchvision==0.21.0",
]

[project.optional-dependencies]
new = ["numpy>=2"]

[dependency-groups]
dev = ["pytest", {include-group = "x"}]
"""


def test_a_sound_pyproject_has_no_findings() -> None:
    assert judged("pyproject.toml", PROJECT) == []


def test_dependencies_extras_groups_and_poetrys_table_are_judged_at_their_lines() -> None:
    assert lines("pyproject.toml", PROJECT.replace("0.21.0", "0.20.1"), "torchvision-mismatch") == [6]
    assert lines("pyproject.toml", PROJECT.replace("numpy>=2", "torchaudio==2.5.1"), "torchvision-mismatch") == [10]
    assert lines("pyproject.toml", PROJECT.replace("pytest", "triton==3.1.0"), "compile-triton-missing") == [13]
    poetry = '[tool.poetry.dependencies]\ntorch = "2.6.0"\ntorchvision = {version = "0.20.1"}\nnumpy = "^2"\n'
    assert lines("pyproject.toml", poetry, "torchvision-mismatch") == [3]


def test_extras_are_not_held_against_each_other() -> None:
    text = '[project.optional-dependencies]\na = ["torch==2.6.0"]\nb = ["torchvision==0.20.1"]\n'
    assert judged("pyproject.toml", text) == []


def test_a_python_range_without_any_wheel_is_found_and_one_with_some_is_not() -> None:
    assert lines("pyproject.toml", PROJECT.replace(">=3.10", ">=3.14"), "python-unsupported") == [3]
    assert "python-unsupported" not in rules("pyproject.toml", PROJECT.replace(">=3.10", ">=3.8"))


def test_uvs_indexes_count_as_named() -> None:
    tagged = PROJECT.replace("torch==2.6.0", "torch==2.6.0+cu124")
    assert rules("pyproject.toml", tagged) == {"torch-index-missing"}
    named = f'\n[[tool.uv.index]]\nname = "t"\nurl = "{INDEX}/cu124"\n[tool.uv.sources]\ntorch = {{index = "t"}}\n'
    assert judged("pyproject.toml", tagged + named) == []
    assert rules("pyproject.toml", PROJECT + named.replace("cu124", "cu121")) == {"torch-build-not-on-index"}


@pytest.mark.parametrize("text", ["[project", "a = " + "[" * 5000, "x = 1\nx = 2\n"])
def test_what_is_not_toml_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="it is not valid TOML"):
        judged("pyproject.toml", text)


@pytest.mark.parametrize("value", ["1", "'x'", "[1]", "[[1]]", "{}", "true"])
def test_values_of_other_types_are_passed_over(value: str) -> None:
    judged(
        "pyproject.toml",
        f"[project]\ndependencies = {value}\nrequires-python = {value}\n[tool]\nuv = {value}\npoetry = {value}",
    )


CONDA = """
name: a
channels: [conda-forge]
dependencies:
  - python=3.12
  - numpy>=2
  - pip
  - pip:
      - torch==2.6.0
      - torchvision==0.21.0
"""


def test_a_sound_environment_has_no_findings() -> None:
    assert judged("environment.yml", CONDA) == []
    old = "channels: [pytorch, nvidia]\ndependencies: [pytorch=2.5.1, torchvision=0.20.1, pytorch-cuda=12.4]\n"
    assert judged("environment.yml", old) == []
    assert judged("environment.yml", "dependencies: [pytorch, torchvision]\nchannels: [conda-forge]\n") == []


def test_conda_and_pip_torch_together_are_found() -> None:
    assert lines("environment.yml", CONDA.replace("numpy>=2", "pytorch=2.6.0"), "conda-pip-torch-mixed") == [8]


def test_the_pip_section_is_judged_as_requirements_are() -> None:
    assert lines("environment.yml", CONDA.replace("0.21.0", "0.20.1"), "torchvision-mismatch") == [9]
    assert lines("environment.yml", CONDA.replace("2.6.0", "2.6.0+cu124"), "torch-index-missing") == [8]
    assert lines("environment.yml", CONDA.replace("torch==2.6.0", "torch==2.2.2"), "numpy2-abi") == [5]


def test_condas_own_pins_are_paired() -> None:
    text = "dependencies:\n- pytorch=2.5.1\n- torchvision=0.21.0\n"
    assert lines("environment.yml", text, "torchvision-mismatch") == [3]


def test_a_python_without_wheels_for_the_pip_torch_is_found() -> None:
    assert lines("environment.yml", CONDA.replace("python=3.12", "python=3.14"), "python-unsupported") == [8]
    assert lines("environment.yml", CONDA.replace("python=3.12", "python=3.14.2"), "python-unsupported") == [8]
    assert judged("environment.yml", CONDA.replace("python=3.12", "python=3.12.40")) == []
    assert judged("environment.yml", CONDA.replace("python=3.12", "python>=3.10")) == []


def test_pytorchs_own_channel_has_nothing_after_2_5() -> None:
    text = "channels:\n- pytorch\n- nvidia\ndependencies:\n- pytorch%s\n"
    assert lines("environment.yml", text % "=2.6.0", "conda-channel-ended") == [2]
    assert lines("environment.yml", text % ">=2.6", "conda-channel-ended") == [2]
    assert judged("environment.yml", text % "=2.4.1") == []
    assert judged("environment.yml", text % "<2.5") == []


@pytest.mark.parametrize(
    ("text", "name", "specifier"),
    [
        ("pytorch=2.5.1", "pytorch", "==2.5.1"),
        ("pytorch::pytorch==2.5.1=py3.12_cuda12.4", "pytorch", "==2.5.1"),
        ("python=3.12", "python", "==3.12.*"),
        ("python 3.12", "python", "==3.12.*"),
        ("numpy>=2,<3", "numpy", ">=2,<3"),
        ("scipy", "scipy", ""),
    ],
)
def test_condas_specs_are_read(text: str, name: str, specifier: str) -> None:
    pin = parse_conda_spec(text, 1)
    assert pin is not None
    assert (pin.name, pin.specifier) == (name, specifier)


def test_pins_know_their_version_and_tag() -> None:
    pin = parse_pin("Torch[opt]==2.6.0+cu124 ; sys_platform == 'linux'", 7)
    assert pin is not None
    assert (pin.name, pin.version, pin.local, pin.line) == ("torch", "2.6.0", "cu124", 7)
    wheel = parse_pin("./wheels/torch-2.6.0+cu124-cp311-cp311-manylinux_2_28_x86_64.whl", 1)
    assert wheel is not None
    assert (wheel.name, wheel.version, wheel.local, wheel.direct) == ("torch", "2.6.0", "cu124", True)
    open_pin = parse_pin("torch==${V}", 1)
    assert open_pin is not None
    assert (open_pin.version, open_pin.bounded) == ("", True)
    assert parse_pin("torch; sys_platform == 'darwin'", 1) is None
