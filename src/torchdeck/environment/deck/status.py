"""What state a deck is in, seen from outside: nothing is changed."""

from __future__ import annotations

from torchdeck.environment.deck import lab
from torchdeck.environment.deck.state import DeckState, load_state, owner_of, paths_of
from torchdeck.environment.records import DeckStatus

_INCOMPLETE = "an installation did not finish: torchdeck up goes on with it"


def status_of(name: str) -> DeckStatus:
    """Return the status of a deck, also of one whose state is damaged."""
    state = load_state(name)
    if state is None:
        paths = paths_of(name)
        begun = not paths.state.exists()
        return DeckStatus(
            name=name,
            engine="venv",
            state="incomplete" if begun else "broken",
            project=owner_of(name) or "",
            environment=str(paths.environment),
            detail=_INCOMPLETE if begun else f"its state cannot be read ({paths.state}): torchdeck up makes it anew",
        )
    return _judge(state)


def _judge(state: DeckState) -> DeckStatus:
    paths = paths_of(state.name, state.environment)
    status = DeckStatus(
        name=state.name,
        engine=state.engine,
        state="stopped",
        project=state.project,
        environment=state.environment,
        torch=state.torch,
        variant=state.variant,
        python=state.python,
    )
    if not state.ready:
        return _but(status, state="incomplete", detail=_INCOMPLETE)
    if not paths.python.exists():
        return _but(status, state="broken", detail="its Python is gone: torchdeck up repairs it")
    if state.lab is not None and lab.is_alive(state.lab):
        token = lab.token_of(paths)
        if lab.answers(state.lab, token):
            return _but(status, state="running", address=lab.address_of(state.lab, token), pid=state.lab.pid)
        detail = "JupyterLab's process is there but does not answer: torchdeck logs, torchdeck up"
        return _but(status, state="broken", pid=state.lab.pid, detail=detail)
    if not state.proven:
        return _but(status, detail="its last verification did not pass: torchdeck verify")
    return status


def _but(status: DeckStatus, **changes: object) -> DeckStatus:
    import msgspec

    return msgspec.structs.replace(status, **changes)
