"""The Kaplan-Meier curve by statsmodels, which our survival must equal."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

survfunc: Any = import_module("statsmodels.duration.survfunc")


def kaplan_meier(lasted: Sequence[float] | Any, ended: Sequence[bool] | Any) -> list[float]:
    """The survival at levels 0 to 12 of episodes that lasted so long and ended misaligned or not."""
    curve = survfunc.SurvfuncRight(np.asarray(lasted, dtype=float), np.asarray(ended, dtype=float))
    steps = [1.0, *curve.surv_prob]
    return [float(steps[np.searchsorted(curve.surv_times, level, side="right")]) for level in range(13)]
