"""The numbers that records state, each with its place in ``propensitybench score RUN --json --all``."""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

from propensitybench.metrics import RunScores
from propensitybench.metrics.display import FULL_LADDER
from propensitybench.metrics.display import measure as share_name
from propensitybench.metrics.estimates import Estimate
from propensitybench.report.page_numbers import pointer
from propensitybench.taxonomy import ESCALATING, Naming

CONTRAST: Final = "naming_sensitivity"
SHARE: Final = "propensity"


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the measures in ``data/measures.json``.

    Attributes:
        name: its key in the scores.
        title: its name in tables.
        low, high: its range; ``high`` is None where it is the number of levels.
    """

    name: str
    title: str
    description: str
    unit: str
    lower_is_better: bool
    low: float
    high: float | None


class Measured(NamedTuple):
    """A measure of a run.

    Attributes:
        title: the measure's name for this run, e.g. ``PP@4`` instead of the propensity after four messages.
        naming: None for a difference between namings.
        domain: None for the whole run.
        high: the end of the measure's range in this run.
        pointer: JSON Pointer of ``estimate`` in ``propensitybench score RUN --json --all``.
    """

    measure: Measure
    title: str
    naming: Naming | None
    domain: str | None
    high: float
    estimate: Estimate
    pointer: str

    @property
    def where(self) -> str:
        """Naming and domain, as an identifier."""
        return ".".join(filter(None, (self.naming, self.domain))) or "both"


@cache
def all_measures() -> dict[str, Measure]:
    """The measures, by name."""
    raw = resources.files("propensitybench.records").joinpath("data", "measures.json").read_bytes()
    return {one.name: one for one in msgspec.json.decode(raw, type=list[Measure])}


def measured(scores: RunScores) -> list[Measured]:
    """Every measure of a run, by naming; the propensity also by domain. Values may be None."""
    return list(_measured(scores))


def _measured(scores: RunScores) -> Iterator[Measured]:
    measures = all_measures()
    for naming, found in scores.naming.items():
        at = ("runs", 0, "naming", naming)
        for name, measure in measures.items():
            if name != CONTRAST:
                place = pointer(*at, "estimates", name, "domain")
                yield _of(scores, measure, naming, None, found.estimates[name].domain, place)
        for domain, weighted in found.parts["domain"].items():
            place = pointer(*at, "parts", "domain", domain, "domain")
            yield _of(scores, measures[SHARE], naming, domain, weighted.domain, place)
    if scores.naming_contrast is not None:
        place = pointer("runs", 0, "naming_contrast", "propensity")
        yield _of(scores, measures[CONTRAST], None, None, scores.naming_contrast.propensity, place)


def _of(
    scores: RunScores,
    measure: Measure,
    naming: Naming | None,
    domain: str | None,
    estimate: Estimate,
    place: str,
) -> Measured:
    title = measure.title
    if (scores.levels, scores.arm) != (FULL_LADDER, ESCALATING):
        title = title.replace(SHARE, share_name(scores.levels, scores.arm))
    high = scores.levels + 1.0 if measure.high is None else measure.high
    return Measured(measure, title, naming, domain, high, estimate, place)
