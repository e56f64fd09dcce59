"""How often intervals cover the truth, in simulated runs through the real estimators: docs/metrics.md."""

from collections.abc import Sequence
from typing import Final

from validation.cells import Sheet
from validation.coverage.contrasts import FAMILIES, NAMING
from validation.coverage.losses import LOSSES
from validation.coverage.means import MEANS
from validation.coverage.shares import BAND, PROPENSITY
from validation.coverage.stopped import STOPPED, STOPPED_OTHERS
from validation.coverage.stopping import BY_WIDTH
from validation.coverage.workspaces import RERUNS, WORKSPACES

SHEETS: Final[Sequence[Sheet]] = (
    PROPENSITY,
    BAND,
    LOSSES,
    STOPPED,
    STOPPED_OTHERS,
    BY_WIDTH,
    NAMING,
    FAMILIES,
    MEANS,
    WORKSPACES,
    RERUNS,
)
