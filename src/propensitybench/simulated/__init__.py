"""Simulated agents of known propensity, with the same interface as a model.

They test the engine, the scoring and the intervals. They say nothing about any model.
"""

from propensitybench.simulated.agent import PREFIX, SimulatedClient, TaskAware
from propensitybench.simulated.profile import Profile, profile, profile_names

__all__ = ["PREFIX", "Profile", "SimulatedClient", "TaskAware", "profile", "profile_names"]
