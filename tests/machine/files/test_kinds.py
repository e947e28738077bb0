"""Which kind a file is of."""

from __future__ import annotations

import pytest

from torchdeck.errors import UsageError
from torchdeck.machine.files import judge_file, kind_by_name, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Dockerfile", "dockerfile"),
        ("docker/Dockerfile.gpu", "dockerfile"),
        ("gpu.dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("compose.yaml", "compose"),
        ("docker-compose.yml", "compose"),
        ("docker-compose.override.yml", "compose"),
        (".devcontainer/devcontainer.json", "devcontainer"),
        (".devcontainer.json", "devcontainer"),
        ("requirements.txt", "requirements"),
        ("requirements-dev.txt", "requirements"),
        ("dev-requirements.txt", "requirements"),
        ("constraints.txt", "requirements"),
        ("pyproject.toml", "pyproject"),
        ("environment.yml", "conda"),
        ("environment-gpu.yaml", "conda"),
        ("Dockerfile.dockerignore", None),
        ("deployment.yaml", None),
        ("package.json", None),
        ("compose.py", None),
        ("profile", None),
    ],
)
def test_the_name_says_the_kind(name: str, kind: str | None) -> None:
    assert kind_by_name(name) == kind


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("image", "# x\nARG V=1\nFROM a:$V\n", "dockerfile"),
        ("stack.yml", "x-a: 1\nservices:\n  a: {}\n", "compose"),
        ("env.yml", "name: x\nchannels: [a]\ndependencies:\n- python\n", "conda"),
        ("dev.json", '// c\n{"image": "a", "runArgs": []}', "devcontainer"),
        ("other.toml", "[project]\nname='a'\n", "pyproject"),
        ("reqs.txt", "torch==2.6.0\n-r more.txt\n", "requirements"),
        ("words.txt", "hello\nworld\n", None),
        ("prose.txt", "pin a==1 and then, of course, more\nnot a list\n", None),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\n", None),
        ("package.json", '{"name": "x", "dependencies": {}}', None),
        ("empty", "", None),
    ],
)
def test_else_the_content_does(name: str, text: str, kind: str | None) -> None:
    assert kind_of(name, text) == kind


def test_a_file_of_no_known_kind_is_refused_with_the_kinds_that_are() -> None:
    with pytest.raises(UsageError) as caught:
        judge_file("notes.md", "# hello")
    assert "compose.yaml" in caught.value.needs
