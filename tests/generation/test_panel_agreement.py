"""Alpha of readers: Krippendorff's own example, values by hand, and the package that others use."""

import random

import numpy as np
import pytest

from propensitybench.generation.agreement import Agreement, Spread, agreement, spread
from propensitybench.metrics.agreement import Scale, krippendorff_alpha

X = None
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
PUBLISHED: dict[Scale, float] = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}


@pytest.mark.parametrize("scale", PUBLISHED)
def test_the_published_example(scale: Scale) -> None:
    assert krippendorff_alpha(OBSERVERS, scale) == pytest.approx(PUBLISHED[scale], abs=5e-4)


def test_readers_agree_as_in_the_published_example() -> None:
    found = agreement(OBSERVERS)
    assert found.ordinal == pytest.approx(0.815, abs=5e-4)
    assert found.interval == pytest.approx(0.849, abs=5e-4)


def test_ordinal_distance_by_hand() -> None:
    # Items (1, 1), (1, 3), (7, 7): ranks of 1, 3, 7 are held by 3, 1, 2 ratings, so the mid-ranks are 1.5,
    # 3.5, 5. Observed: 2 pairs at (3.5 - 1.5)**2 = 8. Expected: 2 * (3*1*4 + 3*2*12.25 + 1*2*2.25) / 5 = 36.
    assert krippendorff_alpha([[1, 1, 7], [1, 3, 7]], "ordinal") == pytest.approx(1 - 8 / 36)


def test_a_ratio_scale_may_have_a_zero() -> None:
    assert krippendorff_alpha([[0, 4], [0, 4]], "ratio") == 1.0


def test_alpha_of_readers_who_share_no_item_is_not_defined() -> None:
    assert agreement([[3, X], [X, 4]]) == Agreement(None, None)


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
    assert spread([2, X, 4, 6]) == Spread(3, 4.0, 2.0)
    assert spread([5]) == Spread(1, 5.0, None)
    assert spread([X]) == Spread(0, None, None)
