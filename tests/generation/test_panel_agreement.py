"""Alpha of readers: Krippendorff's own example, values by hand, and the package that others use."""

import random

import numpy as np
import pytest

from propensitybench.generation.agreement import Alphas, ScoreSpread, agreement, spread
from propensitybench.metrics.agreement import Scale, krippendorff_alpha

X = None
PUBLISHED: dict[Scale, float] = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}


def test_alpha_of_readers_who_share_no_item_is_not_defined() -> None:
    assert agreement([[3, X], [X, 4]]) == Alphas(None, None)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", PUBLISHED)
def test_alpha_is_that_of_the_package(scale: Scale, seed: int) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    rng = random.Random(seed)
    rows = [[rng.choice([X, 1, 2, 3, 4, 5, 6, 7]) for _ in range(12)] for _ in range(rng.randint(2, 4))]
    table = np.array([[np.nan if score is None else score for score in row] for row in rows])
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=scale)
    assert krippendorff_alpha(rows, scale) == pytest.approx(expected)


def test_spread_by_hand() -> None:
    assert spread([2, X, 4, 6]) == ScoreSpread(3, 4.0, 2.0)
    assert spread([5]) == ScoreSpread(1, 5.0, None)
    assert spread([X]) == ScoreSpread(0, None, None)
