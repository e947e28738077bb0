"""Judging: facts in, findings out. A rule that lacks its facts says *unknown*, never *fine*."""

from torchdeck.machine.judge.judge import judge, judge_for_build
from torchdeck.machine.judge.policy import Policy

__all__ = ["Policy", "judge", "judge_for_build"]
