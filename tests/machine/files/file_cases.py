"""Judging a text in a test: its rules, with the lines."""

from __future__ import annotations

from torchdeck.machine.files import judge_file
from torchdeck.machine.records import Finding

# PyTorch's own indexes are recognised by how their address ends; no real address is needed here.
INDEX = "https://index.example/whl"


def judged(name: str, text: str) -> list[Finding]:
    return judge_file(name, text.lstrip("\n"))


def rules(name: str, text: str) -> set[str]:
    return {finding.rule for finding in judged(name, text)}


def lines(name: str, text: str, rule: str) -> list[int]:
    return [int(finding.where.rsplit(":", 1)[1]) for finding in judged(name, text) if finding.rule == rule]
