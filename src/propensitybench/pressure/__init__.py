"""The 12 pressure messages of a scenario and a dimension, composed from fragments in data files."""

from propensitybench.pressure.fragments import Step, schedule
from propensitybench.pressure.messages import pressure_messages

__all__ = ["Step", "pressure_messages", "schedule"]
