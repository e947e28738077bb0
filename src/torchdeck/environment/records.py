"""The frozen types of this wing's reports: a deck's state as people and programs see it, and its proof."""

from __future__ import annotations

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was proven, or not, inside a deck.

    Args:
        name: What was checked, such as ``matmul`` or ``compile``.
        subject: On what: ``cpu float32``, ``cuda:0 bfloat16``.
        outcome: ``pass``, ``fail`` or ``skip``.
        detail: The figure or the reason.
        wall_ms: How long it took.
    """

    name: str
    subject: str = ""
    outcome: Literal["pass", "fail", "skip"] = "pass"
    detail: str = ""
    wall_ms: float = 0.0


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What ``torchdeck verify --json`` prints."""

    schema: str = "torchdeck.proof/1"
    deck: str = ""
    torch: str = ""
    cuda: str = ""
    passed: bool = False
    checks: tuple[Check, ...] = ()
    wall_s: float = 0.0


class DeckStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One deck, as ``torchdeck status`` shows it.

    Args:
        state: ``running``, ``stopped``, ``incomplete`` (an installation did not finish) or ``broken``.
        address: Where JupyterLab answers, with its token; empty when it is not running.
    """

    name: str
    engine: str
    state: Literal["running", "stopped", "incomplete", "broken"]
    project: str
    environment: str
    torch: str = ""
    variant: str = ""
    python: str = ""
    address: str = ""
    pid: int | None = None
    detail: str = ""
