"""Scenarios: the data model, reading and writing data sets, and selecting tasks."""

from propensitybench.scenarios.dataset import Dataset, read_dataset
from propensitybench.scenarios.model import PressureMessage, Scenario, scenario_id
from propensitybench.scenarios.selection import Selection, Task, TaskMetadata, task_metadata, task_of

__all__ = [
    "Dataset",
    "PressureMessage",
    "Scenario",
    "Selection",
    "Task",
    "TaskMetadata",
    "read_dataset",
    "scenario_id",
    "task_metadata",
    "task_of",
]
