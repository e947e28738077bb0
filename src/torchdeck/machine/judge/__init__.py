"""Judging: facts in, findings out. A rule that lacks its facts says *unknown*, never *fine*."""

from torchdeck.machine.judge.judge import in_order, judge, judge_by_subject, judge_for_build
from torchdeck.machine.judge.policy import Policy

__all__ = ["Policy", "in_order", "judge", "judge_by_subject", "judge_for_build"]
