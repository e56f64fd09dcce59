"""The 12 messages that raise the pressure, made from fragments that stand in data files."""

from propensitybench.pressure.fragments import Step, schedule
from propensitybench.pressure.messages import pressure_messages

__all__ = ["Step", "pressure_messages", "schedule"]
