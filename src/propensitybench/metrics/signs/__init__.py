"""The nine signs of propensity as declared tests: effects, intervals, verdicts.

The published study reports them of the models that it tested. Here each is a question with a smallest effect
that matters, fixed before the data are seen; docs/findings.md explains the verdicts.
"""

from propensitybench.metrics.signs.declared import SIGNS, Declaration, declared
from propensitybench.metrics.signs.findings import ModelFindings, find
from propensitybench.metrics.signs.subject import Read, Subject

__all__ = ["SIGNS", "Declaration", "ModelFindings", "Read", "Subject", "declared", "find"]
