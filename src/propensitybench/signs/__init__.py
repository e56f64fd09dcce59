"""The nine signs of propensity, tested on models: `propensitybench.findings`."""

from propensitybench.signs.find import Finding, ModelFindings, find
from propensitybench.signs.findings import Findings, findings
from propensitybench.signs.nine import SIGNS, Sign, declared
from propensitybench.signs.subject import Read, Subject

__all__ = [
    "SIGNS",
    "Finding",
    "Findings",
    "ModelFindings",
    "Read",
    "Sign",
    "Subject",
    "declared",
    "find",
    "findings",
]
