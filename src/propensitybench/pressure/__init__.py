"""The 12 pressure messages of a scenario and a dimension: a storyline fitted with the scenario's words."""

from propensitybench.pressure.fitting import fit
from propensitybench.pressure.messages import Chain, pressure_chain, storyline_of, suitable
from propensitybench.pressure.values import Step, schedule

__all__ = [
    "Chain",
    "Step",
    "fit",
    "pressure_chain",
    "schedule",
    "storyline_of",
    "suitable",
]
