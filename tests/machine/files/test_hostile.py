"""No text breaks a parser, and the work grows with the text and no faster."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdeck.errors import UsageError
from torchdeck.machine.files import judge_file

NAMES = ["Dockerfile", "compose.yaml", "devcontainer.json", "requirements.txt", "pyproject.toml", "environment.yml"]
PARTS = [
    *"\n \t\\'\"$`#{}[]()<>=:;,&|-*!@%",
    *("FROM ", "RUN ", "ARG ", "ENV ", "COPY --from=", "CMD ", "AS ", "<<EOF\n", "\nEOF\n", "\\\n", "# escape=`\n"),
    *("pip install ", "conda install ", "torch", "==2.6.0", "+cu124", ">=2", "torchvision==0.20.1", "$A", "${A:-b}"),
    *("nvidia/cuda:12.4.1-runtime-ubuntu22.04", "python:3.14-slim", "pytorch/pytorch:2.6.0-cuda12.4", "bash -c '"),
    *(
        "services:\n  a:\n    ",
        "image: ",
        "deploy: ",
        "devices: ",
        "capabilities",
        "&a ",
        "*a",
        "<<: ",
        "ports: [8888]",
    ),
    *('{"image": "', '"runArgs": [', "// c\n", "/* ", "*/", "--gpus", "--ServerApp.token=''", "é", "\u2028", "\x00"),
    *(
        "[project]\n",
        "dependencies = ",
        "dependencies:\n- ",
        "channels: ",
        "; python_version < '3.9'",
        "1e9999",
        "-i u/cu124",
    ),
]
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PARTS), max_size=40).map("".join))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
def test_any_text_gives_findings_or_a_refusal(name: str, text: str) -> None:
    try:
        findings = judge_file(name, text)
    except UsageError:
        return
    count = text.count("\n") + 1
    for finding in findings:
        assert 1 <= int(finding.where.rsplit(":", 1)[1]) <= count


# What a parser could go over again and again.
UNITS = {
    "Dockerfile": [
        "RUN pip install torch==2.6.0 torchvision==0.20.1\n",
        "RUN a \\\n",
        "FROM a AS b\n",
        "FROM python:3.12-slim AS s\nRUN pip install torch\n",
        "FROM a\nCOPY --from=0 /opt /opt\n",
        "ENV A=$A B=$B\n",
        "ARG A=$A$A\n",
        "a",
        "RUN <<EOF\n",
        '"',
        "'",
        "\\",
        "RUN pip install a&&",
        "$",
        "${A:-",
        "=",
        " ",
        "<<A ",
        "ENV A=b " + "a" * 50,
        "PermitRootLogin ",
        "token=",
    ],
    "compose.yaml": ["  - a\n", "a: b\n", "'", "[", "a: &a b\n", "a: {<<: {b: c}}\n", "- ", " ", "? ", "${A:-"],
    "devcontainer.json": ["/*", '"', '\\"', "//\n", ",", "[", "{", " ", ", "],
    "requirements.txt": [
        "torch==2.6.0\n",
        "torchvision==0.20.1\ntorch==2.6.0\nnvidia-nccl-cu12==1\n",
        "a\\\n",
        "a",
        "#",
        " #",
        " ",
        "--hash=a ",
        "a;",
        "torch==2.6.0; python_version < '3.9' and ",
        "(",
    ],
    "pyproject.toml": ["a = 1\n", "[a]\n", '"', "a.", "[", "# \n", " "],
    "environment.yml": ["- pytorch=2.6.0\n", "- pip: [torch]\n", "a", "[", "'"],
}
HEADS = {
    "Dockerfile": [
        "",
        "FROM python:3.12-slim\n",
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install ",
        "FROM a\nENV A=b ",
    ],
    "compose.yaml": ["", "services:\n  a:\n    command: '", "services:\n  a:\n    ports:\n"],
    "devcontainer.json": ["", '{"image": "', "{"],
    "requirements.txt": ["", "torch==2.6.0 "],
    "pyproject.toml": ["", "[project]\ndependencies = [", 'a = """'],
    "environment.yml": ["", "dependencies:\n", "dependencies: ['"],
}
ATTACKS = [(name, head, unit) for name, units in UNITS.items() for unit in units for head in HEADS[name]]


def _seconds(name: str, text: str) -> float:
    started = time.perf_counter()
    with contextlib.suppress(UsageError):
        judge_file(name, text)
    return time.perf_counter() - started


@pytest.mark.parametrize(("name", "head", "unit"), ATTACKS)
def test_the_work_grows_no_faster_than_the_text(name: str, head: str, unit: str) -> None:
    small, large = (head + unit * (size // len(unit)) for size in (50_000, 1_000_000))
    _seconds(name, small[:1000])
    took = _seconds(name, large)
    # Twenty times the text, and 65 at most were seen (the collector of garbage); growth with the square would be 400.
    assert took < 0.5 or took < 200 * _seconds(name, small)
    assert took < 20
