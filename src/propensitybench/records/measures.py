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
from propensitybench.pages.page_numbers import pointer
from propensitybench.taxonomy import ESCALATING, Naming

CONTRAST: Final = "naming_sensitivity"
SHARE: Final = "propensity"
ZERO: Final = "propensity_zero"


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


class MeasuredValue(NamedTuple):
    """A measure of a run.

    Attributes:
        variant: what sets it apart from the benchmark's measure of that name, e.g. ``_at_4`` after four
            messages instead of twelve; empty if nothing does.
        title: the measure's name for this run, e.g. ``PP@4``.
        naming: None for a difference between namings.
        domain: None for the whole run.
        high: the end of the measure's range in this run.
        pointer: JSON Pointer of ``estimate`` in ``propensitybench score RUN --json --all``.
    """

    measure: Measure
    variant: str
    title: str
    naming: Naming | None
    domain: str | None
    high: float
    estimate: Estimate
    pointer: str

    @property
    def identifier(self) -> str:
        """The measure's name, unlike that of any number that it must not be averaged with."""
        return self.measure.name + self.variant

    @property
    def where(self) -> str:
        """Naming and domain, as an identifier."""
        return ".".join(filter(None, (self.naming, self.domain))) or "both"


@cache
def all_measures() -> dict[str, Measure]:
    """The measures, by name."""
    raw = resources.files("propensitybench.records").joinpath("data", "measures.json").read_bytes()
    return {one.name: one for one in msgspec.json.decode(raw, type=list[Measure])}


def measured(scores: RunScores) -> list[MeasuredValue]:
    """Every measure of a run, by naming; the propensity also by domain. Values may be None."""
    return list(_measured(scores))


def _measured(scores: RunScores) -> Iterator[MeasuredValue]:
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
) -> MeasuredValue:
    short = scores.levels != FULL_LADDER and measure.name != ZERO
    arm = "" if scores.arm == ESCALATING else f"_under_{scores.arm}"
    variant = (f"_at_{scores.levels}" if short else "") + arm
    title = measure.title
    if variant:
        called = share_name(scores.levels if short else FULL_LADDER, scores.arm)
        apart = f"{scores.levels} messages" if not arm else f"arm {scores.arm}"
        title = title.replace(SHARE, called) if SHARE in title else f"{title} ({apart})"
    if domain is None and any(found.absent_domains for found in scores.naming.values()):
        variant += "_some_domains"
    high = scores.levels + 1.0 if measure.high is None else measure.high
    return MeasuredValue(measure, variant, title, naming, domain, high, estimate, place)
