"""What Inspect AI finds in this package; named by the entry point in the group ``inspect_ai``."""

from inspect_ai.model import ModelAPI, modelapi

from propensitybench.inspect_adapter.probe import stated
from propensitybench.inspect_adapter.provider import SimulatedModel
from propensitybench.inspect_adapter.scorer import propensity as propensity_scorer
from propensitybench.inspect_adapter.scorer import scores
from propensitybench.inspect_adapter.tasks import propensity, stated_policy

__all__ = ["propensity", "propensity_scorer", "scores", "simulated", "stated", "stated_policy"]


@modelapi(name="simulated")
def simulated() -> type[ModelAPI]:
    """Our simulated agents: ``--model simulated/PROFILE``."""
    return SimulatedModel
