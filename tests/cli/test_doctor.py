"""``torchdeck doctor``: this machine, a saved one, and files that are neither."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from conftest import Home

HOSTS = Path(__file__).parent.parent / "hosts"


def test_a_saved_machine_gets_the_same_answer_anywhere(home: Home, tmp_path: Path) -> None:
    saved = tmp_path / "host.json"
    here = home.run("doctor", "--save", str(saved), "--json")
    there = home.run("doctor", "--facts", str(saved), "--json")
    assert here.stdout == there.stdout
    assert json.loads(there.stdout)["schema"] == "torchdeck.findings/1"
    assert here.returncode == there.returncode


def test_errors_exit_with_1_and_warnings_only_when_strict(home: Home) -> None:
    warned = str(HOSTS / "docker_small_shm.json")
    assert home.run("doctor", "--facts", warned).returncode == 0
    assert home.run("doctor", "--facts", warned, "--strict").returncode == 1
    assert home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json")).returncode == 1


def test_a_finding_says_what_why_and_the_command_that_mends_it(home: Home) -> None:
    done = home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json"))
    assert "error[driver-too-old] the driver 470.82.01 is too old for torch 2.6.0+cu124" in done.stdout
    assert "  mend    " in done.stdout
    assert "525.60.13" in done.stdout


def test_markdown_can_be_pasted_into_an_issue(home: Home) -> None:
    done = home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json"), "--md")
    assert "| error | `driver-too-old` |" in done.stdout


def test_a_file_that_is_no_fact_file_exits_with_2(home: Home, tmp_path: Path) -> None:
    wrong = tmp_path / "host.json"
    wrong.write_text('{"schema": "torchdeck.facts/1", "storage"')
    done = home.run("doctor", "--facts", str(wrong))
    assert done.returncode == 2
    assert "not a fact file" in done.stderr
    assert home.run("doctor", "--facts", str(tmp_path / "absent.json")).returncode == 2
    assert home.run("doctor", "--facts", str(tmp_path)).returncode == 2


def test_facts_that_cannot_be_saved_exit_with_4(home: Home, tmp_path: Path) -> None:
    done = home.run("doctor", "--save", str(tmp_path / "no" / "folder" / "host.json"))
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


def test_control_codes_in_a_fact_file_do_not_reach_the_terminal(home: Home, tmp_path: Path) -> None:
    document = json.loads((HOSTS / "a100_old_driver.json").read_text())
    document["nvidia"]["gpus"][0]["name"] = "evil\x1b]0;title\x07\x1b[2J"
    hostile = tmp_path / "host.json"
    hostile.write_text(json.dumps(document))
    done = home.run("doctor", "--facts", str(hostile))
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


def test_the_last_line_counts_and_gives_the_next_command(home: Home) -> None:
    done = home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json"))
    assert done.stdout.strip().splitlines()[-1].startswith("1 error; next: ")


def test_options_that_exclude_each_other_exit_with_2(home: Home) -> None:
    host = str(HOSTS / "a100_old_driver.json")
    for arguments in (("--facts", host, "--fix"), ("--facts", host, "--deep"), ("--dry-run",), ("--rule", "disk-full")):
        assert home.run("doctor", *arguments).returncode == 2, arguments


def test_a_rule_without_a_safe_mend_is_refused_with_its_page(home: Home) -> None:
    done = home.run("doctor", "--fix", "--rule", "driver-too-old")
    assert done.returncode == 2
    assert "torchdeck explain driver-too-old" in done.stderr


def test_a_mend_is_shown_and_nothing_is_done_by_a_dry_run(home: Home) -> None:
    done = home.run("doctor", "--fix", "--dry-run")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


def test_deep_checks_without_a_deck_say_what_is_needed(home: Home) -> None:
    done = home.run("doctor", "--deep")
    assert done.returncode == 2
    assert "torchdeck up" in done.stderr


def test_watching_shows_the_first_judgement_and_ends_by_ctrl_c(home: Home) -> None:
    process = home.popen("doctor", "--watch", "1", start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr


def test_verbose_names_what_is_fine_beside_what_is_not(home: Home) -> None:
    done = home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json"), "-v")
    (fine,) = [line for line in done.stdout.splitlines() if line.startswith("fine: ")]
    assert "compilers" in fine
    assert "the installed torch" not in fine
    assert "fine: " not in home.run("doctor", "--facts", str(HOSTS / "a100_old_driver.json")).stdout
