"""From a log to the cause and the mend: lines in, findings out. Pure, and linear in the length of the log.

Every pattern runs in RE2, whose matching time is linear in the text whatever the text is; each line is looked at once
by one automaton of all patterns, and what is kept of the log does not grow with it.
"""

from torchdeck.machine.explain.explain import explain, explain_ids
from torchdeck.machine.explain.records import ExplainReport, Explanation

__all__ = ["ExplainReport", "Explanation", "explain", "explain_ids"]
