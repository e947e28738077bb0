"""Which torch build fits a machine, and why the others do not. Pure: facts and a request in, a report out."""

from torchdeck.machine.stack.request import StackRequest, request_from
from torchdeck.machine.stack.resolve import find_build, listed_releases, resolve_reachable, resolve_stack

__all__ = ["StackRequest", "find_build", "listed_releases", "request_from", "resolve_reachable", "resolve_stack"]
