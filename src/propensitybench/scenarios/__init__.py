"""Scenarios: what one is, how a data set is read, checked, selected and written."""

from propensitybench.scenarios.library import Library, read_library
from propensitybench.scenarios.model import PressureMessage, Scenario, scenario_id
from propensitybench.scenarios.selection import Selection, Task

__all__ = ["Library", "PressureMessage", "Scenario", "Selection", "Task", "read_library", "scenario_id"]
