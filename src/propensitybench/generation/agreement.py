"""How scores of several readers are spread, and how far the readers agree."""

from collections.abc import Sequence
from statistics import fmean, stdev

import msgspec

from propensitybench.metrics.agreement import krippendorff_alpha

Ratings = Sequence[Sequence[float | None]]
"""One row for each reader, one column for each item; None where a score is missing."""


class ScoreSpread(msgspec.Struct, frozen=True):
    """Number, mean and sample standard deviation of scores; None where there are too few."""

    n: int
    mean: float | None
    sd: float | None


class Alphas(msgspec.Struct, frozen=True):
    """Krippendorff's alpha with two levels of measurement; None if it is not defined."""

    ordinal: float | None
    interval: float | None


def spread(scores: Sequence[float | None]) -> ScoreSpread:
    """The spread of the scores that are there."""
    found = [score for score in scores if score is not None]
    return ScoreSpread(len(found), fmean(found) if found else None, stdev(found) if len(found) > 1 else None)


def agreement(ratings: Ratings) -> Alphas:
    """How far readers agree about the items that at least two of them scored."""
    return Alphas(krippendorff_alpha(ratings, "ordinal"), krippendorff_alpha(ratings, "interval"))
