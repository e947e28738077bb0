"""Each rule on Dockerfiles: a file that has the fault, and one that looks like it and has not."""

from __future__ import annotations

import pytest
from files.file_cases import INDEX, judged, lines, rules

SLIM = """
FROM python:3.12-slim
ENV PIP_NO_CACHE_DIR=1
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
"""

GOOD = {
    "slim": f"""
# syntax=docker/dockerfile:1
FROM python:3.12-slim-bookworm
RUN apt-get update \\
 && apt-get install -y --no-install-recommends gcc g++ \\
 && rm -rf /var/lib/apt/lists/*
RUN --mount=type=cache,target=/root/.cache/pip \\
    pip install torch==2.6.0 torchvision==0.21.0 torchaudio==2.6.0 --index-url {INDEX}/cu124
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility NVIDIA_VISIBLE_DEVICES=all
RUN useradd --create-home lab
USER lab
WORKDIR /home/lab
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
""",
    "two stages with uv": """
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS build
COPY --from=ghcr.io/astral-sh/uv:0.9.7 /uv /bin/uv
RUN uv venv /opt/venv && \\
    uv pip install --no-cache --python /opt/venv --torch-backend=cu126 torch==2.7.1 torchvision==0.22.1

FROM python:${PYTHON}-slim
RUN apt-get update && apt-get install -y build-essential
COPY --from=build /opt/venv /opt/venv
USER 1000
CMD ["/opt/venv/bin/python", "train.py"]
""",
    "torch of the base": """
FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel
RUN pip install --no-cache-dir torch torchvision==0.21.0 transformers
""",
    "a runtime of PyTorch's, whose compiler is not known": """
FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
RUN python -mpip install --no-cache-dir transformers
""",
    "cpu": f"""
FROM python:3.12-slim
RUN apt-get update && apt-get install -y g++
RUN pip install --no-cache-dir --index-url {INDEX}/cpu torch==2.6.0
""",
    "not about torch": """
FROM node:22.3.0
RUN npm ci
EXPOSE 22
""",
    "requirements file": SLIM + "COPY requirements.txt .\nRUN pip install -r requirements.txt\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_a_sound_file_has_no_findings(text: str) -> None:
    assert judged("Dockerfile", text) == []


# rule, severity, line, the fault, the look-alike
CASES = [
    (
        "cuda-installed-twice",
        "warning",
        2,
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.6.0",
        "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.6.0 && "
        "pip install --no-build-isolation flash-attn",
    ),
    (
        "cuda-installed-twice",
        "warning",
        4,
        "FROM python:3.12 AS build\nRUN true\n\nRUN pip install torch==2.6.0 -t /opt/venv\n"
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCOPY --from=build /opt/venv /opt/venv",
        "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build\nRUN pip install torch==2.6.0 -t /opt/venv\n"
        "FROM python:3.12-slim\nCOPY --from=build /opt/venv /opt/venv",
    ),
    (
        "base-torch-replaced",
        "warning",
        2,
        "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\nRUN pip install torch==2.7.1",
        "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\nRUN pip install 'torch>=2.4' timm",
    ),
    (
        "torch-unpinned",
        "warning",
        3,
        "FROM python:3.12\nRUN true && \\\n    pip install torch",
        "FROM python:3.12\nRUN pip install 'torch>=2.4,<2.7'",
    ),
    (
        "torch-unpinned",
        "warning",
        2,
        "FROM python:3.12\nRUN python3 -u -mpip install --upgrade 'torch>=2.4'",
        "FROM python:3.12\nRUN echo pip install torch\nRUN pip install torch -c constraints.txt",
    ),
    (
        "torch-unpinned",
        "warning",
        2,
        'FROM python:3.12\nRUN ["pip", "install", "torch"]',
        "FROM python:3.12\nRUN pip install torch==2.6.0\nRUN pip install torch torchmetrics",
    ),
    (
        "torch-unpinned",
        "warning",
        4,
        "FROM python:3.12\nRUN <<EOF\nset -e\npip install torch\nEOF",
        "FROM python:3.12\nRUN cat <<EOF > notes\npip install torch\nEOF",
    ),
    (
        "pip-requirement-unquoted",
        "error",
        2,
        "FROM python:3.12\nRUN pip install torch>=2.6",
        "FROM python:3.12\nRUN pip install 'torch>=2.6,<2.7' > log 2>&1",
    ),
    (
        "torchvision-mismatch",
        "error",
        2,
        "FROM python:3.12\nRUN pip install torch==2.6.0 torchvision==0.20.1",
        "FROM python:3.12\nRUN pip install torch==2.6.0 torchvision",
    ),
    (
        "torchvision-mismatch",
        "error",
        4,
        "FROM python:3.12\nARG TORCH=2.6.0\nRUN pip install torch==${TORCH}\nRUN pip install torchaudio==2.5.1",
        "FROM python:3.12\nARG TORCH=2.5.1\nRUN pip install torch==${TORCH}\nRUN pip install torchaudio==2.5.1",
    ),
    (
        "torch-build-not-on-index",
        "error",
        2,
        f"FROM python:3.12\nRUN pip install torch==2.6.0 --index-url {INDEX}/cu121",
        f"FROM python:3.12\nRUN pip install torch==2.6.0 --index-url {INDEX}/cu126",
    ),
    (
        "torch-build-not-on-index",
        "warning",
        2,
        f"FROM python:3.12\nRUN pip install torch==2.7.1 --extra-index-url {INDEX}/cu124",
        f"FROM python:3.12\nRUN pip install torch==2.7.1 --extra-index-url {INDEX}/rocm6.3",
    ),
    (
        "torch-build-not-on-index",
        "error",
        3,
        f"FROM python:3.12\nENV PIP_INDEX_URL={INDEX}/cu128\nRUN pip install torch==2.6.0",
        f"FROM python:3.12\nENV PIP_INDEX_URL={INDEX}/cu128\nRUN pip install torch==2.7.1",
    ),
    (
        "torch-index-missing",
        "error",
        2,
        "FROM python:3.12\nRUN pip install torch==2.6.0+cu124",
        f"FROM python:3.12\nRUN pip install torch==2.6.0+cu124 -f {INDEX}/torch_stable.html",
    ),
    (
        "python-unsupported",
        "error",
        2,
        "FROM python:3.14-slim\nRUN pip install torch==2.6.0",
        "FROM python:3.14-slim\nRUN uv venv --python 3.12 && uv pip install torch==2.6.0",
    ),
    (
        "python-unsupported",
        "error",
        2,
        "FROM nvidia/cuda:12.4.1-base-ubuntu20.04\nRUN pip3 install torch==2.6.0",
        "FROM nvidia/cuda:12.4.1-base-ubuntu20.04\nRUN apt-get install -y python3.11 && pip3 install torch==2.6.0",
    ),
    (
        "torch-no-musl-wheels",
        "error",
        2,
        "FROM python:3.12-alpine\nRUN pip install torch==2.6.0",
        "FROM python:3.12-alpine\nRUN pip install flask",
    ),
    (
        "wheel-cpu-only",
        "warning",
        2,
        f"FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.6.0 --index-url {INDEX}/cpu",
        f"FROM ubuntu:22.04\nRUN pip install torch==2.6.0 --index-url {INDEX}/cpu",
    ),
    (
        "compile-no-c-compiler",
        "info",
        2,
        "FROM python:3.12-slim\nRUN pip install torch==2.6.0",
        "FROM python:3.12-slim\nRUN apt-get install -y gcc-12 g++-12\nRUN pip install torch==2.6.0",
    ),
    (
        "compile-no-c-compiler",
        "info",
        3,
        "FROM python:3.12-slim\nRUN apt-get install -y gcc\nRUN pip install torch==2.6.0 && apt-get purge -y gcc",
        "FROM python:3.12-slim\nENV TORCH_COMPILE_DISABLE=1\nRUN pip install torch==2.6.0",
    ),
    (
        "cuda-lib-shadowed",
        "warning",
        4,
        "FROM python:3.12\nRUN pip install torch==2.6.0\nENV A=b \\\n"
        "  LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64:$LD_LIBRARY_PATH",
        "FROM python:3.12\nRUN pip install torch==2.6.0\nENV LD_LIBRARY_PATH=/usr/local/nvidia/lib64",
    ),
    (
        "conda-pip-torch-mixed",
        "warning",
        3,
        "FROM continuumio/miniconda3:25.1.1\nRUN conda install -y pytorch=2.5.1 -c pytorch\n"
        "RUN pip install torchvision==0.20.1",
        "FROM continuumio/miniconda3:25.1.1\nRUN conda install -y numpy\n"
        "RUN conda run -n base pip install torch==2.6.0",
    ),
    (
        "cuda-wheels-mixed",
        "error",
        2,
        "FROM python:3.12\nRUN pip install nvidia-cudnn-cu12==9.1.0.70 nvidia-nccl-cu13==2.28.3",
        "FROM python:3.12\nRUN pip install nvidia-cudnn-cu12==9.1.0.70 nvidia-nccl-cu12==2.21.5",
    ),
    (
        "numpy2-abi",
        "error",
        2,
        "FROM python:3.11\nRUN pip install torch==2.2.2 numpy==2.1.0",
        "FROM python:3.11\nRUN pip install torch==2.6.0 numpy==2.1.0",
    ),
    (
        "nvidia-env-incomplete",
        "error",
        3,
        "FROM python:3.12\nENV A=1 \\\n NVIDIA_DRIVER_CAPABILITIES=graphics,utility",
        "FROM python:3.12\nENV NVIDIA_DRIVER_CAPABILITIES=${NVIDIA_DRIVER_CAPABILITIES},video",
    ),
    (
        "jupyter-runs-as-root",
        "warning",
        2,
        "FROM python:3.12\nCMD jupyter lab --allow-root",
        "FROM python:3.12\nUSER lab\nCMD jupyter lab --allow-root",
    ),
    (
        "jupyter-without-token",
        "error",
        2,
        'FROM python:3.12\nCMD ["jupyter", "lab", "--NotebookApp.token=\'\'"]',
        'FROM python:3.12\nCMD ["sh", "-c", "jupyter lab --ServerApp.token=\\"$TOKEN\\""]',
    ),
    (
        "jupyter-without-token",
        "error",
        2,
        'FROM python:3.12\nCMD ["jupyter", "lab", "--IdentityProvider.token="]',
        'FROM python:3.12\nCMD jupyter lab --ServerApp.token="" --ServerApp.password="argon2:abc"',
    ),
    (
        "jupyter-without-token",
        "error",
        2,
        "FROM python:3.12\nRUN echo \"c.ServerApp.token = ''\" >> /etc/jupyter_server_config.py",
        "FROM python:3.12\nRUN echo \"c.ServerApp.token = 'x'\" >> /etc/jupyter_server_config.py",
    ),
    ("secret-in-image", "error", 2, "FROM a:1\nENV DB_PASSWORD=hunter22", "FROM a:1\nENV DB_PASSWORD_FILE=/run/secret"),
    ("secret-in-image", "error", 2, "FROM a:1\nENV API_KEY 12345abc", "FROM a:1\nENV TOKENIZERS_PARALLELISM=false"),
    ("secret-in-image", "warning", 2, "FROM a:1\nARG HF_TOKEN", "FROM a:1\nARG MAX_TOKENS=20 TOKEN_COUNT=3"),
    ("secret-in-image", "warning", 1, "ARG WANDB_API_KEY\nFROM a:1", "ARG VERSION=1\nFROM a:1"),
    (
        "secret-in-image",
        "error",
        2,
        "FROM a:1\nRUN pip install -i https://me:pw@index.example/simple x",
        "FROM a:1\nRUN --mount=type=secret,id=t pip install -i https://me:$(cat /run/secrets/t)@index.example/simple x",
    ),
    (
        "pip-cache-in-layer",
        "info",
        2,
        "FROM a:1\nRUN pip install flask",
        "FROM a:1\nENV PIP_NO_CACHE_DIR=1\nRUN pip install flask",
    ),
    (
        "pip-cache-in-layer",
        "info",
        2,
        "FROM a:1\nRUN uv pip install flask",
        "FROM a:1\nRUN pip install flask && rm -rf /root/.cache\nRUN pip --timeout 60 install --no-cache-dir x",
    ),
    (
        "image-requires-newer-driver",
        "info",
        1,
        "FROM nvidia/cuda:12.8.1-base-ubuntu24.04",
        "FROM nvidia/cuda:12.8.1-base-ubuntu24.04\nENV NVIDIA_DISABLE_REQUIRE=1",
    ),
    (
        "base-image-unpinned",
        "warning",
        1,
        "FROM pytorch/pytorch:latest",
        "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel",
    ),
    ("base-image-unpinned", "info", 1, "FROM ubuntu", "FROM ubuntu:24.04 AS ubuntu-base\nFROM ubuntu-base"),
    ("base-image-unpinned", "info", 1, "FROM python:latest", "FROM python@sha256:0123abcd"),
    (
        "ssh-root-login",
        "error",
        2,
        "FROM a:1\nRUN sed -i 's/#PermitRootLogin no/PermitRootLogin yes/' /etc/ssh/sshd_config\nEXPOSE 22",
        "FROM a:1\nRUN sed -i 's/PermitRootLogin yes/PermitRootLogin no/' /etc/ssh/sshd_config\nEXPOSE 22",
    ),
    (
        "ssh-root-login",
        "error",
        2,
        "FROM a:1\nRUN echo 'root:toor' | chpasswd\nCMD /usr/sbin/sshd -D",
        "FROM a:1\nRUN echo 'root:toor' | chpasswd\nEXPOSE 2222",
    ),
    (
        "torch-release-unknown",
        "info",
        2,
        "FROM python:3.12\nRUN pip install torch==2.7.0",
        "FROM python:3.12\nRUN pip install torch==2.7.1",
    ),
]


@pytest.mark.parametrize(("rule", "severity", "line", "fault", "look_alike"), CASES)
def test_a_fault_is_found_at_its_line_and_what_looks_like_it_is_not(
    rule: str, severity: str, line: int, fault: str, look_alike: str
) -> None:
    found = [finding for finding in judged("Dockerfile", fault) if finding.rule == rule]
    assert [(finding.severity, finding.where) for finding in found] == [(severity, f"Dockerfile:{line}")]
    assert found[0].title
    assert found[0].cause
    assert found[0].mend
    assert rule not in rules("Dockerfile", look_alike)


def test_no_finding_repeats_a_secret() -> None:
    text = f"FROM a:1\nENV HF_TOKEN=hf_{'a1' * 20}\nARG DB_PASSWORD=correct-horse\n"
    text += "RUN pip install -i https://me:pass7@x/s torch"
    assert "secret-in-image" in rules("Dockerfile", text)
    told = repr(judged("Dockerfile", text))
    assert "a1a1" not in told
    assert "correct-horse" not in told
    assert "pass7" not in told


def test_a_virtual_environment_from_another_stage_counts_as_installed_torch() -> None:
    text = "FROM python:3.12 AS b\nRUN pip install --no-cache-dir torch==2.6.0\nFROM python:3.12-slim\n"
    assert rules("Dockerfile", text + "COPY --from=b /opt/venv /opt/venv") == {"compile-no-c-compiler"}
    assert rules("Dockerfile", text + "COPY --from=b /app/data /app/data") == set()


def test_a_cuda_image_names_the_driver_that_it_asks_for() -> None:
    (finding,) = judged("Dockerfile", "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n")
    assert "550.54.15" in finding.title


def test_the_gravest_come_first_then_by_line() -> None:
    found = judged(
        "Dockerfile", "FROM ubuntu\nRUN pip install torch\nRUN pip install torchaudio>=2\nRUN pip install torch>=2\n"
    )
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=["error", "warning", "unknown", "info"].index
    )
    assert lines(
        "Dockerfile", "FROM a:1\nRUN pip install torch>=2\nRUN pip install torchaudio>=2", "pip-requirement-unquoted"
    ) == [2, 3]
