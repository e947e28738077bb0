"""Each rule on compose files: a file that has the fault, and one that looks like it and has not."""

from __future__ import annotations

import time

import pytest
from files.file_cases import judged, rules

from torchdeck.errors import UsageError

TORCH = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"

GOOD = {
    "reservation": f"""
services:
  train:
    image: {TORCH}
    command: torchrun --nproc-per-node 2 train.py
    shm_size: 8gb
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: all
              capabilities: [gpu]
  lab:
    image: {TORCH}
    gpus: all
    ipc: host
    command: ["jupyter", "lab", "--ip=0.0.0.0"]
    ports:
      - "127.0.0.1:8888:8888"
""",
    "cdi, anchors and merges": f"""
x-gpu: &gpu
  devices: ["nvidia.com/gpu=all"]
  shm_size: ${{SHM:-16g}}
services:
  a:
    <<: *gpu
    image: {TORCH}
  b:
    <<: [*gpu]
    image: vllm/vllm-openai:v0.11.0
""",
    "no GPU on purpose": f"""
services:
  db:
    image: postgres:17
    ports: ["5432:5432"]
  cpu:
    image: {TORCH}
    environment: {{CUDA_VISIBLE_DEVICES: "", A: b}}
    shm_size: 4g
  smi:
    image: nvidia/cuda:12.4.1-base-ubuntu22.04
    command: nvidia-smi
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, count: 1, capabilities: [gpu]}}]}}}}}}
  tmp:
    build: .
    gpus: all
    volumes:
      - {{type: tmpfs, target: /dev/shm}}
    command: python train.py
""",
    "empty": "services: {}\n",
    "nothing": "\n",
    "a list": "- a\n- b\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_a_sound_file_has_no_findings(text: str) -> None:
    assert judged("compose.yaml", text) == []


def service(*lines: str) -> str:
    return "services:\n  s:\n" + "".join(f"    {line}\n" for line in lines)


RESERVED = "deploy: {resources: {reservations: {devices: [%s]}}}"
CASES = [
    ("gpu-not-passed-to-container", "warning", 3, service(f"image: {TORCH}"), service(f"image: {TORCH}", "gpus: all")),
    (
        "gpu-not-passed-to-container",
        "warning",
        3,
        service("image: me/app:1.0-cu124"),
        service("image: me/app:1.0-cpu", "command: echo cuda"),
    ),
    (
        "gpu-not-passed-to-container",
        "warning",
        4,
        service("build: .", "command: torchrun train.py", "shm_size: 8g"),
        service("build: .", "command: python train.py", "shm_size: 8g"),
    ),
    (
        "gpu-not-passed-to-container",
        "warning",
        3,
        service("environment: [NVIDIA_VISIBLE_DEVICES=all]"),
        service("environment: [NVIDIA_VISIBLE_DEVICES=void]", f"image: {TORCH}"),
    ),
    (
        "gpu-not-passed-to-container",
        "warning",
        3,
        service("image: ${IMAGE:-nvidia/cuda:12.4.1-base-ubuntu22.04}"),
        service("image: nvidia/cuda:12.4.1-base-ubuntu22.04", "extends: {file: gpu.yaml, service: a}"),
    ),
    (
        "compose-gpu-reservation-invalid",
        "error",
        3,
        service(RESERVED % "{driver: nvidia, count: 1}"),
        service(RESERVED % "{driver: cdi, device_ids: [nvidia.com/gpu=0]}"),
    ),
    (
        "compose-gpu-reservation-invalid",
        "error",
        3,
        service(RESERVED % "{driver: nvidia, capabilities: gpu}"),
        service(RESERVED % "{driver: nvidia, capabilities: [gpu, compute]}"),
    ),
    (
        "compose-gpu-reservation-invalid",
        "warning",
        3,
        service(RESERVED % "{driver: nvidia, count: 1, capabilities: [compute]}"),
        service(RESERVED % "{capabilities: [gpu]}"),
    ),
    (
        "compose-gpu-reservation-invalid",
        "error",
        3,
        service(RESERVED % "{driver: nvidia, count: 1, device_ids: ['0'], capabilities: [gpu]}"),
        service(RESERVED % "{driver: nvidia, device_ids: ['0'], capabilities: [gpu]}"),
    ),
    (
        "shm-too-small",
        "warning",
        2,
        service(f"image: {TORCH}", "gpus: all"),
        service(f"image: {TORCH}", "gpus: all", "tmpfs: ['/dev/shm:size=8g']"),
    ),
    (
        "shm-too-small",
        "warning",
        5,
        service(f"image: {TORCH}", "gpus: all", "shm_size: 256m"),
        service(f"image: {TORCH}", "gpus: all", "shm_size: 1073741824"),
    ),
    (
        "shm-too-small",
        "warning",
        2,
        service("build: .", "gpus: all", "command: [python, train_gpt.py]"),
        service("build: .", "gpus: all", "command: [python, serve.py]"),
    ),
    (
        "port-published-everywhere",
        "warning",
        3,
        service('ports: ["8888:8888"]'),
        service('ports: ["127.0.0.1:8888:8888", "[::1]:8888:8888", "8080:80"]'),
    ),
    (
        "port-published-everywhere",
        "warning",
        4,
        service("ports:", "  - 8888"),
        service("ports:", "  - {target: 8888, published: 8888, host_ip: 127.0.0.1}"),
    ),
    (
        "port-published-everywhere",
        "warning",
        3,
        service('ports: ["0.0.0.0:${P:-9999}:8888"]'),
        service('ports: ["127.0.0.1:${P:-9999}:8888"]', 'expose: ["8888"]'),
    ),
    (
        "jupyter-without-token",
        "error",
        3,
        service("command: jupyter lab --NotebookApp.token=''"),
        service("command: jupyter lab --NotebookApp.token=${TOKEN}"),
    ),
    (
        "jupyter-without-token",
        "error",
        6,
        service("command:", "  - jupyter", "  - lab", "  - --IdentityProvider.token="),
        service("command:", "  - jupyter", "  - lab", "  - --IdentityProvider.token=x"),
    ),
    ("compose-runtime-legacy", "info", 3, service("runtime: nvidia"), service("runtime: runc")),
    (
        "nvidia-env-incomplete",
        "error",
        4,
        service("environment:", "  NVIDIA_DRIVER_CAPABILITIES: utility"),
        service("environment:", "  NVIDIA_DRIVER_CAPABILITIES: compute,utility"),
    ),
    (
        "compose-version-ignored",
        "info",
        1,
        "version: '3.8'\nservices: {}\n",
        "name: x\nservices: {a: {x-version: 1}}\n",
    ),
]


@pytest.mark.parametrize(("rule", "severity", "line", "fault", "look_alike"), CASES)
def test_a_fault_is_found_at_its_line_and_what_looks_like_it_is_not(
    rule: str, severity: str, line: int, fault: str, look_alike: str
) -> None:
    found = [finding for finding in judged("compose.yaml", fault) if finding.rule == rule]
    assert [(finding.severity, finding.where) for finding in found] == [(severity, f"compose.yaml:{line}")]
    assert found[0].mend
    assert rule not in rules("compose.yaml", look_alike)


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\t- x", "a: &a [*b]", "[" * 3000, "- " * 3000, "a: \x07"])
def test_what_is_not_yaml_is_refused_with_the_name_of_the_file(text: str) -> None:
    with pytest.raises(UsageError, match=r"compose\.yaml: it is not valid YAML"):
        judged("compose.yaml", text)


def test_an_alias_costs_nothing_however_often_it_is_used() -> None:
    bomb = "a0: &a0 {x: y}\n" + "".join(
        f"a{n}: &a{n} {{{', '.join(f'k{i}: *a{n - 1}' for i in range(9))}}}\n" for n in range(1, 30)
    )
    merges = "m0: &m0 {x: y}\n" + "".join(
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}\n" for n in range(1, 30)
    )
    started = time.perf_counter()
    judged("compose.yaml", bomb + merges + "services: *a29\n")
    judged("compose.yaml", bomb + merges + "services: {s: *m29}\n")
    judged("compose.yaml", "services: &s\n  a: &x\n    <<: *x\n    deploy: *x\n  b: *s\n")
    assert time.perf_counter() - started < 5


def test_without_pyyaml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(UsageError) as caught:
        judged("compose.yaml", "services: {}")
    assert caught.value.mend == ("uv pip install pyyaml",)
