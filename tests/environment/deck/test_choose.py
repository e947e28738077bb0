"""Stack and Python of a deck, chosen on machines that are simulated by their facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machine_hosts import changed, h100

from torchdeck.environment.deck import choose as room
from torchdeck.environment.deck.choose import choose
from torchdeck.environment.deck.pythons import Python
from torchdeck.environment.deck.report import Silent
from torchdeck.environment.deck.spec import DeckSpec
from torchdeck.errors import FindingsError, NetworkError, UsageError
from torchdeck.machine.facts import Facts, Gpu, Missing
from torchdeck.machine.facts.python import PythonFacts


class Machine:
    """A simulated machine: its facts, the indexes it reaches, the Pythons on it and those that can be fetched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.facts: Facts = h100()
        self.current = "3.11.2"
        self.present: set[str] = set()
        self.fetched: set[str] = set()
        self.reaches = False
        self.notes: list[str] = []
        monkeypatch.setattr(room, "gather", lambda: self.facts)
        monkeypatch.setattr(room, "gather_python", self._facts_of)
        monkeypatch.setattr(room, "reachable", lambda index: self.reaches)
        monkeypatch.setattr(room, "current_python", lambda: Python(Path("/usr/bin/python3"), self.current))
        monkeypatch.setattr(room, "find_python", self._find)
        monkeypatch.setattr(room, "find_any", lambda wanted: next(filter(None, map(self._find, wanted)), None))
        monkeypatch.setattr(room, "obtain_python", self._obtain)

    def _facts_of(self, path: Path) -> PythonFacts | Missing:
        return self.facts.python

    def _find(self, wanted: str) -> Python | None:
        return Python(Path(f"/opt/python{wanted}"), f"{wanted}.1") if wanted in self.present else None

    def _obtain(self, wanted: str, reporter: Any) -> Python:
        if wanted in self.present | self.fetched:
            return Python(Path(f"/opt/python{wanted}"), f"{wanted}.1")
        raise NetworkError(f"there is no Python {wanted} here", found="dns error")

    def choose(self, **asked: Any) -> room.Choice:
        machine = self

        class Notes(Silent):
            def note(self, text: str) -> None:
                machine.notes.append(text)

        return choose(DeckSpec(project=Path("/project"), **asked), Notes())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_a_sound_gpu_machine_gets_the_reference_for_its_gpu(machine: Machine) -> None:
    choice = machine.choose()
    assert choice.pins == ["torch==2.6.0", "torchvision==0.21.0", "torchaudio==2.6.0"]
    assert (choice.installed.variant, choice.backend, choice.gpu) == ("cu124", "", "sm_90")
    assert choice.findings == ()
    assert choice.python.version == "3.11.2"


def test_a_build_on_pytorchs_own_index_names_it_for_uv(machine: Machine) -> None:
    machine.facts = changed(machine.facts, "nvidia.driver.version", "470.82.01")
    machine.reaches = True
    choice = machine.choose()
    assert (choice.installed.variant, choice.backend) == ("cu118", "cu118")


def test_a_driver_whose_build_is_out_of_reach_stops_with_exit_code_4(machine: Machine) -> None:
    machine.facts = changed(machine.facts, "nvidia.driver.version", "470.82.01")
    with pytest.raises(NetworkError) as caught:
        machine.choose()
    assert caught.value.rule == "index-unreachable"
    assert caught.value.exit_code == 4


def test_a_machine_without_a_driver_gets_the_build_for_the_cpu_that_it_can_have(machine: Machine) -> None:
    machine.facts = changed(
        changed(changed(machine.facts, "nvidia.driver", None), "nvidia.gpus", ()), "nvidia.num_pci", 0
    )
    assert machine.choose().installed.variant == "cu124"
    assert machine.choose().gpu == ""
    assert any("cu124" in reason for reason in machine.choose().reasons)
    machine.reaches = True
    assert (machine.choose().installed.variant, machine.choose().backend) == ("cpu", "cpu")


def test_blackwell_gets_the_nearest_release_that_it_can_have(machine: Machine) -> None:
    gpu = Gpu(index=0, name="RTX 5090", cc=(12, 0), memory_bytes=1)
    machine.facts = changed(changed(machine.facts, "nvidia.gpus", (gpu,)), "nvidia.driver.version", "580.95.05")
    choice = machine.choose()
    assert (choice.installed.torch, choice.installed.variant, choice.gpu) == ("2.8.0", "cu128", "sm_120")


def test_a_python_without_wheels_gives_way_to_one_on_the_machine(machine: Machine) -> None:
    machine.current, machine.present = "3.14.0", {"3.13", "3.10"}
    choice = machine.choose()
    assert (choice.installed.torch, choice.python.version) == ("2.6.0", "3.13.1")
    assert any("instead of 3.14.0" in reason for reason in choice.reasons)


def test_a_python_without_wheels_gives_way_to_one_that_uv_fetches(machine: Machine) -> None:
    machine.current, machine.fetched = "3.14.0", {"3.12"}
    assert machine.choose().python.version == "3.12.1"


def test_where_no_other_python_can_be_had_the_nearest_release_that_fits_is_taken(machine: Machine) -> None:
    machine.current = "3.14.0"
    choice = machine.choose()
    assert (choice.installed.torch, choice.python.version) == ("2.9.1", "3.14.0")
    assert machine.notes


def test_an_asked_stack_without_a_python_for_it_says_what_would_fit(machine: Machine) -> None:
    machine.current = "3.14.0"
    with pytest.raises(NetworkError) as caught:
        machine.choose(stack="2.6")
    assert caught.value.exit_code == 4
    assert "3.12" in caught.value.needs
    assert "torchdeck up --stack 2.9.1" in caught.value.mend


def test_a_python_that_was_asked_for_is_kept_and_the_stack_fits_it(machine: Machine) -> None:
    machine.present = {"3.14", "3.12"}
    choice = machine.choose(python="3.14")
    assert (choice.installed.torch, choice.python.version) == ("2.9.1", "3.14.1")


def test_a_python_and_a_stack_that_exclude_each_other_are_refused(machine: Machine) -> None:
    machine.present = {"3.14", "3.12"}
    with pytest.raises(FindingsError) as caught:
        machine.choose(python="3.14", stack="2.6")
    assert caught.value.rule == "python-unsupported"


def test_an_unlisted_stack_is_a_usage_error(machine: Machine) -> None:
    with pytest.raises(UsageError, match=r"1\.13 is not in the catalogue"):
        machine.choose(stack="1.13")


def test_what_the_machine_lacks_for_compiling_is_said_before_the_installation(machine: Machine) -> None:
    machine.facts = changed(machine.facts, "toolchain.cxx", None)
    assert [finding.rule for finding in machine.choose().findings] == ["compile-no-c-compiler"]


def test_a_stack_and_a_python_that_exclude_each_other_are_refused_before_the_python_is_fetched(
    machine: Machine,
) -> None:
    machine.fetched = set()
    with pytest.raises(FindingsError, match=r"no build of torch 2\.6 fits"):
        machine.choose(stack="2.6", python="3.14")
