"""``torchdeck stacks`` as a program sees it: JSON on standard output, words on standard error, exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Home


def ask(home: Home, *arguments: str) -> tuple[int, Any, str]:
    done = home.run("stacks", *arguments, "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_a_machine_that_is_described_gets_its_build(home: Home) -> None:
    code, report, _ = ask(home, "--driver", "535.104.05", "--cc", "9.0", "--python", "3.11", "--arch", "x86_64")
    assert code == 0
    assert report["schema"] == "torchdeck.stacks/1"
    assert (report["chosen"]["torch"], report["chosen"]["variant"]) == ("2.6.0", "cu124")
    assert report["installed"]["index"] == "pypi"
    assert all(row["reason"] for row in report["rejected"])


def test_without_a_driver_the_cpu_build_is_chosen(home: Home) -> None:
    code, report, _ = ask(home, "--driver", "none", "--python", "3.12", "--arch", "x86_64")
    assert code == 0
    assert report["chosen"]["variant"] == "cpu"
    assert report["installed"]["torch"] == "2.6.0"


def test_a_driver_alone_does_not_borrow_this_machines_gpu(home: Home) -> None:
    _, report, _ = ask(home, "--driver", "550.54.15", "--offline")
    assert report["request"]["cc"] is None
    assert any("not known" in reason for reason in report["chosen"]["reasons"])


def test_without_options_it_answers_for_this_machine(home: Home) -> None:
    code, report, _ = ask(home, "--offline")
    assert code == 0
    assert report["request"]["python"]
    assert report["chosen"]["torch"]


def test_where_nothing_fits_it_exits_with_1_and_chosen_is_null(home: Home) -> None:
    code, report, said = ask(home, "--driver", "535.104.05", "--cc", "3.5", "--python", "3.11", "--arch", "x86_64")
    assert code == 1
    assert report["chosen"] is None
    assert "error[arch-dropped-from-wheel]" in said
    assert "mend" in said


@pytest.mark.parametrize(
    "arguments",
    [("--driver", "newest"), ("--cc", "H100"), ("--python", "three"), ("--torch", "2.6.1"), ("--torch", "2.6-cu999"),
     ("--arch", "a b"), ("--bogus",)],
)  # fmt: skip
def test_what_is_not_understood_exits_with_2(home: Home, arguments: tuple[str, ...]) -> None:
    code, report, said = ask(home, *arguments)
    assert code == 2
    assert report is None
    assert "rror" in said


def test_an_index_that_does_not_answer_leaves_the_build_that_only_it_has_out_of_reach(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens on the discard port, so every index behind this proxy is unreachable, whatever the network is.
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    code, report, said = ask(home, "--driver", "470.82.01", "--cc", "8.0", "--python", "3.11", "--arch", "x86_64")
    assert code == 4
    assert report["chosen"] is None
    assert report["wanted"]["variant"] == "cu118"
    assert "index-unreachable" in said


def test_the_text_names_the_choice_the_reason_and_what_was_not_taken(home: Home) -> None:
    done = home.run(
        "stacks", "--driver", "580.95.05", "--cc", "12.0", "--python", "3.11", "--arch", "x86_64", "--offline"
    )
    assert "torch 2.7.1+cu128" in done.stdout
    assert "none that the newer sm_120 can run" in done.stdout
    assert "torchdeck stacks --all" in done.stdout
