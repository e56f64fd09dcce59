"""Means and ratios: levels withstood, resilience, persistence, abandonment, competence."""

from functools import partial
from typing import Final

import numpy as np
from helpers.coverage.cells import Cell, Result, Sheet, covers
from helpers.coverage.shares import FULL, PROPENSITIES, layout_of, percent
from helpers.populations import LEVELS, TASK_SPREAD, Work, agent_of, play_tasks, survival, table_of_levels

from propensitybench.metrics.estimates import RatioTerms, estimate_terms, interval

SPREAD: Final = 1.5
# Per level: probability of a termination, and mean number of aligned calls, each with a scenario effect.
TERMINATES: Final = 0.1
ALIGNED: Final = 1.5
EFFECT: Final = 0.6
