"""Each rule on devcontainer.json."""

from __future__ import annotations

import pytest
from files.file_cases import judged, rules

from torchdeck.errors import UsageError

TORCH = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel"
GOOD = [
    f"""
// A comment, and a "quoted" word
{{
  "name": "train", /* another
  one */
  "image": "{TORCH}",
  "runArgs": ["--gpus", "all", "--shm-size=8g",],
  "containerEnv": {{"URL": "a//b /* c */"}},
}}
""",
    f'{{"image": "{TORCH}", "hostRequirements": {{"gpu": "optional"}}, "runArgs": ["--ipc=host"]}}',
    f'{{"image": "{TORCH}", "runArgs": ["--device=nvidia.com/gpu=all", "--shm-size", "4g"]}}',
    '{"dockerComposeFile": "compose.yaml", "service": "lab", "image": "nvidia/cuda:12.4.1-base-ubuntu22.04"}',
    '{"image": "mcr.microsoft.com/devcontainers/python:3.12"}',
    '{"build": {"dockerfile": "Dockerfile"}}',
    "[]",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_sound_file_has_no_findings(text: str) -> None:
    assert judged("devcontainer.json", text) == []


@pytest.mark.parametrize(
    ("rule", "severity", "line", "fault", "look_alike"),
    [
        (
            "gpu-not-passed-to-container",
            "warning",
            3,
            f'{{\n// image\n"image": "{TORCH}", "runArgs": ["--ipc=host"]}}',
            f'{{"image": "{TORCH}", "hostRequirements": {{"gpu": true}}, "runArgs": ["--ipc=host"]}}',
        ),
        (
            "gpu-not-passed-to-container",
            "warning",
            2,
            '{"image": "a:1",\n"features": {"ghcr.io/devcontainers/features/nvidia-cuda:1": {}}}',
            '{"image": "a:1",\n"features": {"ghcr.io/devcontainers/features/node:1": {}}}',
        ),
        (
            "gpu-not-passed-to-container",
            "warning",
            1,
            f'{{"image": "{TORCH}", "hostRequirements": {{"gpu": false}}, "runArgs": ["--ipc=host"]}}',
            '{"image": "pytorch/pytorch:2.6.0-cpu"}',
        ),
        (
            "shm-too-small",
            "warning",
            2,
            f'{{"image": "{TORCH}",\n"runArgs": ["--gpus=all"]}}',
            f'{{"image": "{TORCH}",\n"runArgs": ["--gpus=all", "-v=/dev/shm:/dev/shm"]}}',
        ),
        (
            "shm-too-small",
            "warning",
            2,
            f'{{"image": "{TORCH}",\n"runArgs": ["--gpus=all", "--shm-size=64m"]}}',
            f'{{"image": "{TORCH}",\n"runArgs": ["--gpus=all", "--shm-size=2g"]}}',
        ),
        (
            "jupyter-without-token",
            "error",
            2,
            '{\n"postStartCommand": "jupyter lab --ServerApp.token=\'\' &"}',
            '{\n"postStartCommand": "jupyter lab --ServerApp.token=$T"}',
        ),
        (
            "nvidia-env-incomplete",
            "error",
            2,
            '{\n"containerEnv": {"NVIDIA_DRIVER_CAPABILITIES": "video"}}',
            '{\n"containerEnv": {"NVIDIA_DRIVER_CAPABILITIES": "all"}}',
        ),
    ],
)
def test_a_fault_is_found_at_its_line_and_what_looks_like_it_is_not(
    rule: str, severity: str, line: int, fault: str, look_alike: str
) -> None:
    found = [finding for finding in judged("devcontainer.json", fault) if finding.rule == rule]
    assert [(finding.severity, finding.where) for finding in found] == [(severity, f"devcontainer.json:{line}")]
    assert rule not in rules("devcontainer.json", look_alike)


@pytest.mark.parametrize("text", ["{", '{"a": 1 "b"}', '{"a', "/*", "[" * 100_000, "1" * 5000, '{"a": \x01}'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="it is not valid JSON"):
        judged("devcontainer.json", text + ("," if text.startswith("1") else ""))


@pytest.mark.parametrize("value", ["null", "1", '"a"', "[1]", "{}", "true"])
@pytest.mark.parametrize(
    "key", ["image", "runArgs", "features", "hostRequirements", "containerEnv", "postStartCommand"]
)
def test_values_of_other_types_are_passed_over(key: str, value: str) -> None:
    judged("devcontainer.json", f'{{"{key}": {value}}}')
