"""A gate for releases: whether a new model has got worse, and how many tasks it takes to tell."""

from propensitybench.gates.ci_files import append_markdown, write_junit
from propensitybench.gates.interface import CandidateSettings, gate, plan_gate
from propensitybench.gates.sample_size import GatePlan, Needed
from propensitybench.gates.verdict import NamingVerdict, Verdict

__all__ = [
    "CandidateSettings",
    "GatePlan",
    "NamingVerdict",
    "Needed",
    "Verdict",
    "append_markdown",
    "gate",
    "plan_gate",
    "write_junit",
]
