"""Simulated agents of known propensity, with the same interface as a model.

They test the engine, the scoring and the intervals. They say nothing about any model.
"""

from propensitybench.simulated.agent import CAVEAT, PREFIX, GivingIn, SimulatedClient, gives_in_at
from propensitybench.simulated.profile import Profile, profile, profile_names

__all__ = [
    "CAVEAT",
    "PREFIX",
    "GivingIn",
    "Profile",
    "SimulatedClient",
    "gives_in_at",
    "profile",
    "profile_names",
]
