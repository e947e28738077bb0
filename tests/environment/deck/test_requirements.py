"""A project's requirements: read, sorted, and held against the stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdeck.environment.deck.requirements import (
    judge_pins,
    raise_for_pins,
    read_requirements,
    without_stack,
)
from torchdeck.errors import FindingsError, UsageError

_STACK = {"torch": "2.6.0", "torchvision": "0.21.0", "torchaudio": "2.6.0"}
_LISTED = ("2.4.1", "2.5.1", "2.6.0", "2.7.1")


def _write(project: Path, text: str, name: str = "requirements.txt") -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(text)


def test_lines_are_sorted_into_what_can_be_locked_and_what_cannot(tmp_path: Path) -> None:
    """Editable, local and version-control requirements have no hash; comments and hashes are dropped."""
    _write(
        tmp_path,
        "numpy>=1.26  # arrays\n-e .\ngit+https://example.org/a.git@v1#egg=a\n./local\n"
        "pkg @ https://example.org/p.whl\nsix==1.17.0 \\\n    --hash=sha256:00\n-i https://mirror.example.org/simple\n",
    )
    found = read_requirements(tmp_path)
    assert found.locked == ["numpy>=1.26", "six==1.17.0"]
    assert found.unlocked == [
        "-e .",
        "git+https://example.org/a.git@v1#egg=a",
        "./local",
        "pkg @ https://example.org/p.whl",
    ]
    assert found.options == ["-i https://mirror.example.org/simple"]


def test_an_index_of_torch_builds_is_left_out_and_said(tmp_path: Path) -> None:
    """The project's own choice of CUDA build would override the one that fits this machine."""
    _write(tmp_path, "--extra-index-url https://download.pytorch.example/whl/cu121\ntorch\n")
    found = read_requirements(tmp_path)
    assert found.options == []
    assert "chooses the build" in found.dropped[0][1]


def test_included_files_are_followed_and_a_circle_is_an_error(tmp_path: Path) -> None:
    """-r is followed beside the including file; a file that includes itself does not hang."""
    _write(tmp_path, "-r more/base.txt\n")
    _write(tmp_path, "tqdm\n", "more/base.txt")
    assert read_requirements(tmp_path).locked == ["tqdm"]
    _write(tmp_path, "-r requirements.txt\n")
    with pytest.raises(UsageError, match="includes itself"):
        read_requirements(tmp_path)


def test_a_malformed_line_names_file_and_line(tmp_path: Path) -> None:
    """Whoever wrote it can go there."""
    _write(tmp_path, "numpy\n\nthis is = not !! a requirement\n")
    with pytest.raises(UsageError, match=r"requirements\.txt:3"):
        read_requirements(tmp_path)


def test_pyproject_is_read_where_there_is_no_requirements_file(tmp_path: Path) -> None:
    """Static dependencies are read; dynamic ones are named as unread; torchdeck itself needs none."""
    _write(tmp_path, '[project]\nname = "x"\ndependencies = ["einops"]\n', "pyproject.toml")
    assert read_requirements(tmp_path).locked == ["einops"]
    _write(tmp_path, '[project]\nname = "x"\ndynamic = ["dependencies"]\n', "pyproject.toml")
    assert "dynamic" in read_requirements(tmp_path).notes[0]
    _write(tmp_path, '[project]\nname = "torchdeck"\ndependencies = ["click"]\n', "pyproject.toml")
    assert read_requirements(tmp_path).locked == []


def test_files_that_are_not_read_are_named(tmp_path: Path) -> None:
    """A conda environment is not silently ignored."""
    _write(tmp_path, "dependencies: [numpy]\n", "environment.yml")
    assert "environment.yml is not read" in read_requirements(tmp_path).notes[0]


def test_a_chosen_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """A file named in the settings must be there."""
    with pytest.raises(UsageError, match=r"dev\.txt does not exist"):
        read_requirements(tmp_path, ["dev.txt"])


@pytest.mark.parametrize(
    ("line", "conflicts"),
    [
        ("torch", 0),
        ("torch>=2.5", 0),
        ("torch==2.6.*", 0),
        ("torch==2.3.0", 1),
        ("torch>=2.7,<3", 1),
        ("torchvision==0.18.0", 1),
        ("Torch < 2", 1),
        ("torch==2.3.0; python_version < '3.0'", 0),
    ],
)
def test_a_pin_that_no_version_of_the_stack_satisfies_is_a_finding(tmp_path: Path, line: str, conflicts: int) -> None:
    """Only a pin that excludes the stack is one, and only where its marker applies."""
    _write(tmp_path, f"{line}\n")
    findings = judge_pins(read_requirements(tmp_path), _STACK, _LISTED)
    assert len(findings) == conflicts
    assert {finding.rule for finding in findings} <= {"torch-pin-conflict"}


def test_a_conflict_offers_the_listed_release_that_the_project_wants(tmp_path: Path) -> None:
    """The choices are commands: the other stack, or leaving the pin out."""
    _write(tmp_path, "torch>=2.7,<2.8\n")
    findings = judge_pins(read_requirements(tmp_path), _STACK, _LISTED)
    with pytest.raises(FindingsError) as caught:
        raise_for_pins(findings)
    assert caught.value.mend[0] == "torchdeck up --stack 2.7.1"
    assert "--keep-stack" in caught.value.mend[1]


def test_requirements_on_the_stack_are_left_to_the_stack(tmp_path: Path) -> None:
    """Torch is pinned by the stack alone, so that no project line can move it."""
    _write(tmp_path, "torch\nTorchVision>=0.1\ntorchmetrics\n")
    assert without_stack(read_requirements(tmp_path), _STACK).locked == ["torchmetrics"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200))
def test_any_file_is_read_or_refused_in_words(tmp_path: Path, text: str) -> None:
    """No content makes the reader crash."""
    (tmp_path / "requirements.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        read_requirements(tmp_path)
    except UsageError as error:
        assert error.title
