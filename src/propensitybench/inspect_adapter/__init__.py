"""PropensityBench in Inspect AI: tasks, a model provider, and logs written and read."""

from propensitybench.inspect_adapter.tasks import propensity, stated_policy

__all__ = ["propensity", "stated_policy"]
