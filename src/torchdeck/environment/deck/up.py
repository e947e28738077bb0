"""``torchdeck up``: from whatever is there to a verified deck with JupyterLab running.

Idempotent: it looks first, does only what is missing, and can be ended at any point; the next call goes on. One
process at a time changes a deck; a second waits and then finds the work done.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from torchdeck.environment.cache.key import cache_folders
from torchdeck.environment.deck import install, lab, own_wheel
from torchdeck.environment.deck.choose import choose_again
from torchdeck.environment.deck.decide import (
    Decision,
    check_space,
    decide,
    deck_paths,
    is_beside,
    own_lock,
    plan_for,
    preview_of,
    release_of,
    shared_lock,
)
from torchdeck.environment.deck.environ import environment_of, usable_threads, variables_of
from torchdeck.environment.deck.files import key_of, lab_variables, plan_files
from torchdeck.environment.deck.integrity import Damage, inspect, installed_packages
from torchdeck.environment.deck.notebooks import place_first_notebook
from torchdeck.environment.deck.paths import DeckPaths
from torchdeck.environment.deck.proof import failed_vitally, verify
from torchdeck.environment.deck.pythons import runs_as
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.requirements import ProjectRequirements, read_requirements
from torchdeck.environment.deck.spec import DeckSpec, inherit, kept_of
from torchdeck.environment.deck.state import (
    DeckState,
    changing,
    claim_deck,
    load_state,
    save_state,
    write_atomic,
)
from torchdeck.environment.lock import LOCK_NAME, Lock, render_constraints, render_lock
from torchdeck.environment.records import Preview, Proof, UpReport
from torchdeck.errors import DiskError, FindingsError
from torchdeck.machine.records import Finding


@dataclass(frozen=True)
class Options:
    """How ``up`` goes about it.

    Args:
        relock: Choose versions anew instead of keeping the lock.
        repair: Look at every package and verify again, also where nothing seems wrong.
        start_lab: Whether JupyterLab is started.
    """

    relock: bool = False
    repair: bool = False
    start_lab: bool = True


@dataclass
class UpResult:
    """What ``up`` did.

    Args:
        state: The deck.
        address: Where JupyterLab answers, with the token; empty if it was not to be started.
        proof: The verification, None if an earlier one still holds.
        did: What was done, in words; empty when everything was there.
        findings: What a person should know of this machine.
    """

    state: DeckState
    address: str = ""
    proof: Proof | None = None
    did: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()

    def report(self) -> UpReport:
        """Return what the command line shows."""
        state = self.state
        return UpReport(
            deck=state.name,
            address=self.address,
            project=state.project,
            notebooks=state.notebooks,
            environment=state.environment,
            torch=state.torch,
            variant=state.variant,
            python=state.python,
            did=tuple(self.did),
            proof=self.proof,
            findings=self.findings,
        )


def request_digest(spec: DeckSpec, wanted: ProjectRequirements) -> str:
    """Return what identifies a request: the same digest means that there is nothing to choose anew."""
    asked = [spec.stack, spec.python, spec.directory, spec.engine, wanted.digest, *spec.packages, str(spec.keep_stack)]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def up(
    spec: DeckSpec,
    reporter: Reporter,
    on_preview: Callable[[Preview], None] = lambda preview: None,
    options: Options | None = None,
) -> UpResult:
    """Bring a deck up.

    Args:
        spec: What is asked for.
        reporter: Is told what is being done.
        on_preview: Is shown what will be downloaded and stored, before it is; may raise to stop.
        options: How to go about it.

    Raises:
        TorchdeckError: Something is in the way; everything that was done stays for the next call.
    """
    name = claim_deck(spec.project, spec.name)
    waiting = f"another torchdeck (process {{}}) is working on the deck {name}: waiting for it"
    with changing(deck_paths(name, spec), on_wait=lambda holder: reporter.note(waiting.format(holder))):
        state = load_state(name)
        spec = inherit(spec, state.asked if state else {})
        wanted = read_requirements(spec.project, spec.requirements)
        work = _Up(spec, deck_paths(name, spec), wanted, reporter, options or Options())
        lock = own_lock(work.paths)
        asked = request_digest(spec, wanted)
        known = state is not None and state.ready and state.request == asked and not work.options.relock
        if state is None or lock is None or not known or work.was_relocked(lock):
            result = work.make(state, asked, on_preview)
        else:
            result = work.mend(state, lock)
        if work.options.start_lab:
            work.start_lab(result)
    return result


class _Up:
    """One ``up`` at work on one deck, which it holds."""

    def __init__(
        self, spec: DeckSpec, paths: DeckPaths, wanted: ProjectRequirements, reporter: Reporter, options: Options
    ) -> None:
        self.spec, self.paths, self.wanted, self.reporter, self.options = spec, paths, wanted, reporter, options

    def make(self, state: DeckState | None, asked: str, on_preview: Callable[[Preview], None]) -> UpResult:
        """Make a deck, or bring an existing one to a new request."""
        before = own_lock(self.paths)
        decision = decide(self.spec, self.paths, self.wanted, self.reporter, relock=self.options.relock)
        preview = preview_of(self.spec, self.paths, decision)
        on_preview(preview)
        check_space(preview)
        if self.options.start_lab:
            self._check_notebooks()
        new = self._new_state(state, asked, decision)
        if new.lab is not None and before is not None and _replaces_torch(before, decision.lock, state, new):
            self.reporter.note("JupyterLab is stopped: the torch under its kernels is being replaced")
            lab.stop(new.lab)
            new = new.but(lab=None)
        save_state(new)
        write_atomic(self.paths.lock, render_lock(decision.lock))
        self._install(decision, before)
        self._write_files(new, decision.lock)
        new = new.but(ready=True, own_wheel=own_wheel.own_digest())
        save_state(new)
        self._share_lock(decision.lock)
        result = UpResult(new, did=["installed"], findings=decision.choice.findings)
        self._prove(result, decision.lock)
        return result

    def _new_state(self, state: DeckState | None, asked: str, decision: Decision) -> DeckState:
        build = decision.choice.installed
        return DeckState(
            name=self.paths.name,
            project=str(self.spec.project),
            environment=str(self.paths.environment),
            notebooks=str(self.spec.notebooks),
            request=asked,
            torch=build.torch,
            variant=build.variant,
            cuda=build.cuda or "",
            index=build.index,
            python=decision.choice.python.version,
            triton=decision.lock.versions.get("triton", ""),
            gpu=decision.choice.gpu,
            port=state.port if state else None,
            lab=state.lab if state else None,
            asked=kept_of(self.spec),
            served=state.served if state else "",
        )

    def _install(self, decision: Decision, before: Lock | None) -> None:
        paths, lock = self.paths, decision.lock
        write_atomic(paths.constraints, render_constraints(lock))
        self.reporter.step("making the environment")
        install.make_environment(decision.plan, paths, decision.choice.python, self.reporter)
        have = installed_packages(paths.environment)
        old = before.versions if before else {}
        install.remove_packages(sorted(name for name in old if name not in lock.versions and name in have), paths)
        self.reporter.step("installing the packages")
        # What is missing or of another version uv sees itself; only broken files must be named to it.
        damage = Damage(broken=inspect(paths.environment, lock).broken)
        install.install_packages(decision.plan, paths, lock, damage, self.reporter)
        self.reporter.step("adding torchdeck and the project's own packages")
        install.install_own(decision.plan, paths, self.spec.project)

    def _write_files(self, state: DeckState, lock: Lock) -> None:
        lab.token_of(self.paths)
        files = plan_files(state, self.paths, render_constraints(lock), usable_threads())
        install.write_files(files, cache_folders(key_of(state)))

    def was_relocked(self, lock: Lock) -> bool:
        """Whether somebody else put other versions for the same request, or another torch, into the project's lock."""
        shared = shared_lock(self.spec)
        if shared is None:
            return False
        same_request = shared.head == lock.head
        other_torch = not self.spec.stack and release_of(self.spec, shared) not in ("", lock.head.torch)
        return (same_request and shared != lock) or other_torch

    def _share_lock(self, lock: Lock) -> None:
        """Put the lock into the project, for everyone else who works on it."""
        if is_beside(self.spec):
            return  # it must not change what the others get
        shared, text = self.spec.project / LOCK_NAME, render_lock(lock)
        try:
            if not shared.is_file() or shared.read_text(encoding="utf-8", errors="replace") != text:
                write_atomic(shared, text)
        except OSError as error:
            self.reporter.note(f"the lock was not written into the project: {error.strerror}")

    def mend(self, state: DeckState, lock: Lock) -> UpResult:
        """Bring a finished deck back to what its lock says; nothing is done to one that is sound."""
        result = UpResult(state)
        damage = inspect(self.paths.environment, lock)
        runs = runs_as(self.paths.python, state.python)
        own = own_wheel.own_digest()
        if damage or not runs or self.options.repair:
            what = damage.describe() if damage else "as asked" if runs else "its Python does not run"
            self.reporter.note(f"repairing the environment: {what}")
            save_state(state.but(ready=False, proven=False))
            choice = choose_again(state, self.reporter)
            plan = plan_for(self.spec, self.paths, choice, list(lock.head.unlocked), have_lock=True)
            self.reporter.step("making the environment")
            install.make_environment(plan, self.paths, choice.python, self.reporter)
            self.reporter.step("installing the packages")
            install.install_packages(plan, self.paths, lock, damage, self.reporter)
            install.install_own(plan, self.paths, self.spec.project)
            result.did.append("repaired")
            state = state.but(python=choice.python.version, proven=False)
        elif own != state.own_wheel:
            self.reporter.step("updating torchdeck in the deck")
            plan = plan_for(self.spec, self.paths, choose_again(state, self.reporter), [], have_lock=True)
            install.install_own(plan, self.paths, self.spec.project)
            result.did.append("updated torchdeck")
        if result.did:
            result.state = state.but(ready=True, own_wheel=own)
            self._write_files(result.state, lock)
            save_state(result.state)
        if not result.state.proven:
            self._prove(result, lock)
        return result

    def _prove(self, result: UpResult, lock: Lock) -> None:
        """Verify the deck; JupyterLab is not started on one that cannot compute."""
        self.reporter.step("proving that it computes right")
        proof = verify(result.state, self.paths, lock, variables_of(result.state), self.reporter)
        result.proof = proof
        result.state = result.state.but(proven=proof.passed)
        save_state(result.state)
        if failed_vitally(proof):
            failed = [check for check in proof.checks if check.outcome == "fail"]
            raise FindingsError(
                "the environment is there, but it does not compute right",
                found="; ".join(f"{check.name} {check.subject}: {check.detail}" for check in failed),
                needs="every check to pass",
                mend=("torchdeck up --repair", "torchdeck verify", "torchdeck doctor"),
            )

    def _check_notebooks(self) -> None:
        """Stop before gigabytes are installed for a JupyterLab that would have no folder to work in."""
        folder = install.existing(self.spec.notebooks)
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise self._no_notebooks("no permission" if folder.is_dir() else f"{folder} is a file")

    def _make_notebooks(self) -> None:
        try:
            self.spec.notebooks.mkdir(parents=True, exist_ok=True)
            place_first_notebook(self.spec.notebooks)
        except OSError as error:
            raise self._no_notebooks(error.strerror or str(error)) from None

    def _no_notebooks(self, found: str) -> DiskError:
        return DiskError(
            f"cannot use {self.spec.notebooks} as JupyterLab's working folder",
            found=found,
            needs="a folder that you may write",
            mend="torchdeck up --notebooks /a/folder/of/yours",
        )

    def start_lab(self, result: UpResult) -> None:
        """Start JupyterLab unless it runs already, as it is asked for."""
        spec, state, token = self.spec, result.state, lab.token_of(self.paths)
        served = f"{spec.notebooks} on {spec.host}"
        running = state.lab if lab.is_alive(state.lab) else lab.find_running(self.paths, token)
        if running is not None:
            if lab.answers(running, token, timeout_s=10.0) and state.served == served:
                result.state = state.but(lab=running)
                save_state(result.state)
                result.address = lab.address_of(running, token)
                return
            self.reporter.note("JupyterLab runs, but not as it is asked for now: it is started anew")
            lab.stop(running)
        self._make_notebooks()
        self.reporter.step("starting JupyterLab")
        # Before the start: should this process be killed meanwhile, the next one finds a Lab as it was asked for.
        state = state.but(lab=None, served=served, notebooks=str(spec.notebooks), asked=kept_of(spec))
        save_state(state)
        environment = {**environment_of(state, os.environ), **lab_variables(self.paths)}
        started = lab.start(state, self.paths, environment, port=spec.port, host=spec.host, notebooks=spec.notebooks)
        wanted = state.port or spec.port
        if started.port != wanted:
            self.reporter.note(f"port {wanted} is taken by another program: JupyterLab has {started.port}")
        result.state = state.but(lab=started, port=started.port)
        save_state(result.state)
        result.address = lab.address_of(started, token)
        result.did.append("started JupyterLab")


def _replaces_torch(before: Lock, after: Lock, state: DeckState | None, new: DeckState) -> bool:
    """Whether running kernels would find another torch, or another Python, beneath them."""
    same_torch = before.versions.get("torch") == after.versions.get("torch")
    return not same_torch or (state is not None and state.python != new.python)
