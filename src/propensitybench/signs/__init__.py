"""The findings about models: runs, placebo arms, labels and stated answers, tested for the nine signs."""

from propensitybench.signs.findings import Findings, findings

__all__ = ["Findings", "findings"]
