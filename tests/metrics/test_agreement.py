"""Agreement of judges: the published examples, and values computed by hand."""

import numpy as np
import pytest

from propensitybench.metrics.agreement import (
    RaterPair,
    alpha_interval,
    krippendorff_alpha,
    pairs,
)
from propensitybench.metrics.arrays import Names
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm

X = None
# Three observers, fifteen units, from Krippendorff's own example of missing data.
CANONICAL = [
    [X, X, X, X, X, 3, 4, 1, 2, 1, 1, 3, 3, X, 3],
    [1, X, 2, 1, 3, 3, 4, 3, X, X, X, X, X, X, X],
    [X, X, 2, 1, 3, 4, 4, X, 2, 1, 1, 3, 3, X, 4],
]


def test_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(CANONICAL) == pytest.approx(0.6914, abs=5e-5)
    assert krippendorff_alpha(CANONICAL, "interval") == pytest.approx(0.8108, abs=5e-5)


def test_alpha_of_four_ratings_by_hand() -> None:
    # Items (1, 1) and (1, 2): of the four ratings three are 1. Disagreeing ordered pairs: 2 of 4
    # observed; expected 2 * 3 * 1 / (4 - 1) = 2. So 1 - 2 / 2 = 0.
    assert krippendorff_alpha([[1, 1], [1, 2]]) == pytest.approx(0.0)
    assert krippendorff_alpha([[1, 2], [1, 2]]) == 1.0


def test_alpha_needs_an_item_with_two_ratings_and_labels_that_vary() -> None:
    assert krippendorff_alpha([[1, None], [None, 2]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None


def test_kappa_of_the_published_table_with_its_error() -> None:
    """Of 73 items; the error is the large-sample one of Fleiss, Cohen and Everitt (1969)."""
    confusion = np.array([[22, 2, 2], [5, 7, 14], [2, 2, 17]])
    first, second = np.repeat(np.argwhere(confusion), confusion[confusion > 0], axis=0).T.tolist()
    (pair,) = pairs([first, second], names(73), np.random.default_rng(0))
    assert pair.kappa == pytest.approx(0.4519, abs=5e-5)
    assert pair.kappa_ci95 is not None
    assert (pair.kappa_ci95.high - pair.kappa_ci95.low) / (2 * 1.96) == pytest.approx(0.0770, rel=0.1)


def names(count: int, each: int = 1) -> Names:
    """Scenarios of so many items."""
    return np.array([f"s{item // each}" for item in range(count)])


def noisy(raters: int, items: int, seed: int = 0) -> list[list[float | None]]:
    """Ratings that are right three times in four, one in ten of them missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, items)
    ratings = np.where(rng.random((raters, items)) < 0.75, truth, rng.integers(0, 3, (raters, items)))
    kept = rng.random((raters, items)) < 0.9
    return [
        [float(rating) if there else None for rating, there in zip(row, seen, strict=True)]
        for row, seen in zip(ratings, kept, strict=True)
    ]


def test_the_interval_of_alpha_holds_it_and_narrows_with_more_items() -> None:
    few, many = (
        alpha_interval(noisy(3, items), names(items), np.random.default_rng(0)) for items in (60, 960)
    )
    for found in (few, many):
        assert found.value is not None
        assert found.ci95 is not None
        assert found.ci95.low < found.value < found.ci95.high
    assert few.ci95 is not None
    assert many.ci95 is not None
    ratio = (few.ci95.high - few.ci95.low) / (many.ci95.high - many.ci95.low)
    assert ratio == pytest.approx(4, rel=0.2)


def test_copies_of_items_in_their_scenario_add_nothing_to_the_interval_of_alpha() -> None:
    once = noisy(3, 80)
    fourfold = [[rating for rating in row for _ in range(4)] for row in once]
    alone, copied, apart = (
        alpha_interval(ratings, scenarios, np.random.default_rng(0))
        for ratings, scenarios in ((once, names(80)), (fourfold, names(320, 4)), (fourfold, names(320)))
    )
    assert alone.ci95 is not None
    assert copied.ci95 is not None
    assert apart.ci95 is not None
    assert copied.ci95 == pytest.approx(alone.ci95, abs=0.01)
    ratio = (alone.ci95.high - alone.ci95.low) / (apart.ci95.high - apart.ci95.low)
    assert ratio == pytest.approx(2, rel=0.1)


def test_alpha_counts_the_items_that_two_have_rated() -> None:
    found = alpha_interval(CANONICAL, names(15), np.random.default_rng(0))
    assert found.value == pytest.approx(0.6914, abs=5e-5)
    assert found.items == 12


@pytest.mark.parametrize(
    ("ratings", "value", "reason"),
    [
        ([[1, X], [X, 2]], None, "none: no value"),
        ([[1] * 20, [1] * 20], None, "none: no value"),
        ([[1, 2] * 10, [1, 2] * 10], 1.0, "none: no spread among clusters"),
        ([[1, 2, 1, 1] * 2, [1, 2, 2, 1] * 2], 0.5, "none: fewer than 10 degrees of freedom"),
    ],
)
def test_where_alpha_has_no_interval(
    ratings: list[list[float | None]], value: float | None, reason: str
) -> None:
    found = alpha_interval(ratings, names(len(ratings[0])), np.random.default_rng(0))
    assert found.value == (None if value is None else pytest.approx(value, abs=1e-12))
    assert (found.ci95, found.method) == (None, reason)


def test_each_pair_of_raters_by_hand() -> None:
    # Agreement .7; by chance .5 * .6 + .5 * .4 = .5. The third rates ten of the items, as the first does.
    first = [0] * 25 + [1] * 25
    second = [0] * 20 + [1] * 5 + [0] * 10 + [1] * 15
    third: list[float | None] = [*first[:5], *[X] * 40, *first[45:]]
    found = pairs([first, second, third], names(50), np.random.default_rng(0))
    assert [(pair.first, pair.second, pair.items) for pair in found] == [(0, 1, 50), (0, 2, 10), (1, 2, 10)]
    assert found[0].agreement == pytest.approx(0.7)
    assert found[0].kappa == pytest.approx(0.4)
    assert (found[1].agreement, found[1].kappa, found[1].kappa_ci95) == (1.0, 1.0, None)
    # As 35 of 50 (Wilson 1927), a little wider for Student's quantile; 10 of 10 leave room for doubt.
    assert found[0].agreement_ci95 == pytest.approx((0.562, 0.809), abs=0.01)
    assert found[1].agreement_ci95 is not None
    assert found[1].agreement_ci95.low < 0.75


def test_a_pair_without_a_common_item() -> None:
    (pair,) = pairs([[1, X], [X, 2]], names(2), np.random.default_rng(0))
    assert pair == RaterPair(0, 1, 0, None, None, None, None, "none: no value")


def test_adjusted_p_values_by_hand() -> None:
    p = [0.01, 0.04, 0.03]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06])
    assert benjamini_hochberg(p) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([]) == benjamini_hochberg([]) == []
