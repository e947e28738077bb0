"""Mends that run: those findings whose mend is safe and can be undone, as plans of commands, and their carrying out."""

from torchdeck.machine.fixes.carry import carry_out
from torchdeck.machine.fixes.plan import Fix, FixStep, plan_fixes

__all__ = ["Fix", "FixStep", "carry_out", "plan_fixes"]
