"""Frozen types of what can be true about a machine. No input or output here; ``Missing(reason)`` is a value."""

from torchdeck.machine.facts.missing import Fact, Missing, known

__all__ = ["Fact", "Missing", "known"]
