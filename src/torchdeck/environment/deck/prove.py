"""``torchdeck verify``: prove a deck that is there, and remember whether it passed."""

from __future__ import annotations

from torchdeck.environment.deck.checking import TIMEOUT_S
from torchdeck.environment.deck.environ import variables_of
from torchdeck.environment.deck.proof import verify
from torchdeck.environment.deck.report import Reporter
from torchdeck.environment.deck.state import DeckState, load_state, paths_of, save_state
from torchdeck.environment.lock import read_lock
from torchdeck.environment.records import Proof
from torchdeck.errors import FindingsError


def prove_deck(state: DeckState, reporter: Reporter, timeout_s: float = TIMEOUT_S) -> Proof:
    """Prove a deck.

    Raises:
        FindingsError: The deck was never installed to the end, so there is nothing to hold it against.
    """
    paths = paths_of(state.name, state.environment)
    lock = read_lock(paths.lock)
    if lock is None or not paths.python.exists():
        raise FindingsError(
            f"the deck {state.name} is not complete",
            found="no lock" if lock is None else f"no Python at {paths.python}",
            mend="torchdeck up",
        )
    proof = verify(state, paths, lock, variables_of(state), reporter, timeout_s)
    now = load_state(state.name)
    if now is not None and now.proven != proof.passed:
        save_state(now.but(proven=proof.passed))
    return proof
