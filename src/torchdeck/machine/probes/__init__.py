"""Gathering: one source a file, each bounded in time. What cannot be known is ``Missing``; nothing here advises."""

from torchdeck.machine.probes.gather import gather

__all__ = ["gather"]
