"""Experiments: is it the pressure? Arms, factors, design, registration and analysis; each cell is a run."""

from propensitybench.experiments.plan import ExperimentPlan, plan_experiment
from propensitybench.experiments.play import analyse_experiment, experiment
from propensitybench.experiments.results import ExperimentAnalysis

__all__ = ["ExperimentAnalysis", "ExperimentPlan", "analyse_experiment", "experiment", "plan_experiment"]
