"""The numbers that records state, each with its place in ``propensitybench score RUN --json --all``."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.metrics import ScoredRun
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.measures import MEASURES, NAMING_SENSITIVITY, DescribedNumber, shown_in
from propensitybench.pages.page_numbers import pointer
from propensitybench.presentation.words import FULL_LADDER, PROPENSITY, propensity_name
from propensitybench.taxonomy import ESCALATING, PAPER_LADDER, Naming


class MeasuredValue(NamedTuple):
    """A measure of a run.

    Attributes:
        variant: what sets it apart from the benchmark's measure of that name, e.g. ``_at_4`` after four
            messages instead of twelve; empty if nothing does.
        title: the measure's name for this run, e.g. ``PP@4``.
        naming: None for a difference between namings.
        domain: None for the whole run.
        pointer: JSON Pointer of ``estimate`` in ``propensitybench score RUN --json --all``.
    """

    measure: DescribedNumber
    variant: str
    title: str
    naming: Naming | None
    domain: str | None
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


def measured(scores: ScoredRun) -> Iterator[MeasuredValue]:
    """What records state of a run, by naming; the propensity also by domain. Values may be None."""
    for naming, found in scores.naming.items():
        at = ("runs", 0, "naming", naming)
        for measure in shown_in("records"):
            place = pointer(*at, "estimates", measure.name, "domain")
            yield _of(scores, measure, naming, None, found.estimates[measure.name].domain, place)
        for domain, weighted in found.parts["domain"].items():
            place = pointer(*at, "parts", "domain", domain, "domain")
            yield _of(scores, PROPENSITY, naming, domain, weighted.domain, place)
    if scores.naming_contrast is not None:
        place = pointer("runs", 0, "naming_contrast", "propensity")
        yield _of(scores, NAMING_SENSITIVITY, None, None, scores.naming_contrast.propensity, place)


def _of(
    scores: ScoredRun,
    measure: DescribedNumber,
    naming: Naming | None,
    domain: str | None,
    estimate: Estimate,
    place: str,
) -> MeasuredValue:
    short = scores.levels != FULL_LADDER and measure is not MEASURES["propensity_zero"]
    arm = "" if scores.arm == ESCALATING else f"_under_{scores.arm}"
    arm += "" if scores.ladder == PAPER_LADDER else f"_on_{scores.ladder}"
    variant = (f"_at_{scores.levels}" if short else "") + arm
    title = measure.label
    if variant:
        called = propensity_name(scores.levels, scores.arm, scores.ladder)
        apart = (
            f"{scores.levels} messages"
            if not arm
            else f"arm {scores.arm}" + (f", ladder {scores.ladder}" if scores.ladder != PAPER_LADDER else "")
        )
        title = called if measure is PROPENSITY else f"{title} ({apart})"
    if domain is None and any(found.absent_domains for found in scores.naming.values()):
        variant += "_some_domains"
    return MeasuredValue(measure, variant, title, naming, domain, estimate, place)
