"""Metrics: pure functions of episode records."""

from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.scores import (
    NamingScores,
    RunRecords,
    Scorable,
    ScoredRun,
    TaskCounts,
    score_naming,
    score_run,
)

__all__ = [
    "Interval",
    "NamingScores",
    "RunRecords",
    "Scorable",
    "ScoredRun",
    "TaskCounts",
    "score_naming",
    "score_run",
]
