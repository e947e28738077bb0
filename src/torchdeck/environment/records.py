"""The frozen types of this wing's reports: a deck's state as people and programs see it, and its proof."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdeck.machine.records import Finding


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


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What ``up`` or ``upgrade`` is about to do, before it does it.

    Args:
        download_bytes: At most this much is downloaded; 0 if everything is in uv's cache or installed.
        stored_bytes: About this much is stored, links into uv's cache included.
    """

    schema: str = "torchdeck.preview/1"
    deck: str
    torch: str
    variant: str
    cuda: str
    python: str
    reasons: tuple[str, ...] = ()
    num_packages: int = 0
    download_bytes: int = 0
    stored_bytes: int = 0
    environment: str = ""
    notebooks: str = ""
    free_bytes: int = 0
    findings: tuple[Finding, ...] = ()


class UpReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``torchdeck up --json`` prints. The address holds the token: treat it as a secret."""

    schema: str = "torchdeck.up/1"
    deck: str
    address: str
    project: str
    notebooks: str
    environment: str
    torch: str
    variant: str
    python: str
    did: tuple[str, ...] = ()
    proof: Proof | None = None
    findings: tuple[Finding, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One package that an upgrade changes; an empty version means that it is not there."""

    name: str
    old: str
    new: str


class UpgradeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``torchdeck upgrade`` changes, before and after it does."""

    schema: str = "torchdeck.upgrade/1"
    deck: str
    old_torch: str
    old_variant: str
    new_torch: str
    new_variant: str
    new_stack: str
    python: str
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    download_bytes: int = 0
    done: bool = False
