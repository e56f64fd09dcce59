"""Shares corrected for a judge's errors: by hand, against each other, and what is missing."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.judged_items import HUNDRED, REFUSED, block, items_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from propensitybench.metrics.corrected import (
    Corrected,
    LabelShare,
    matrix_shares,
    misses,
    on_simplex,
    rogan_gladen_shares,
    uncorrected_shares,
)
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.judged import MISSING, Judged, Resamples
from propensitybench.metrics.ppi import ppi_shares
from validation.judged_worlds import FOUR_LABELS, binary, judged, relabelled, sampled, transcripts

DRAWS = 400
Correction = Callable[[Resamples], list[Corrected]]
CORRECTIONS: list[Correction] = [rogan_gladen_shares, matrix_shares, ppi_shares]


def resamples(sample: Judged, seed: int = 0) -> Resamples:
    return Resamples(sample, np.random.default_rng(seed), DRAWS)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_the_corrected_share_by_hand(correction: Correction) -> None:
    # Of 20 that the judge labels 1 people would 16, of the 80 others 8.
    no, yes = correction(resamples(items_of(HUNDRED)))
    assert yes.share.value == pytest.approx(0.24)
    assert no.share.value == pytest.approx(0.76)
    assert yes.bias.difference == pytest.approx(0.20 - 0.24)
    assert (yes.share.items, yes.share.missing, yes.share.labelled) == (100, 0, 20)


def test_a_domain_is_corrected_by_the_errors_of_all_or_by_its_own() -> None:
    perfect = block("e", 1, {1: 10}, unseen=40) + block("e", 0, {0: 10}, unseen=40)
    found = resamples(items_of(HUNDRED + perfect))
    own = ppi_shares(found)[1].by_domain
    assert {name: share.value for name, share in own.items()} == pytest.approx({"d": 0.24, "e": 0.5})
    # Over both domains people label 24 + 50 items 1, of which the judge finds 16 + 50; and 72 + 50 of 126.
    skill = 66 / 74 + 122 / 126 - 1
    expected = {"d": (0.2 - 4 / 126) / skill, "e": (0.5 - 4 / 126) / skill}
    for correction in rogan_gladen_shares, matrix_shares:
        pooled = correction(found)[1].by_domain
        assert {name: share.value for name, share in pooled.items()} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_in_a_sample_drawn_by_the_judges_labels_all_corrections_agree(seed: int) -> None:
    sample = judged(FOUR_LABELS, np.random.default_rng(seed))
    found = resamples(sample, seed)
    columns = [[one.share for one in correction(found)] for correction in CORRECTIONS]
    weight = sample.weight
    domains = [sample.domain == name for name in np.unique(sample.domain)]
    for category, (gladen, matrix, ppi) in enumerate(zip(*columns, strict=True)):
        by_hand = np.mean([weight[rows & (sample.person == category)].sum() / rows.sum() for rows in domains])
        assert [gladen.value, matrix.value, ppi.value] == pytest.approx([by_hand] * 3)
        assert gladen.ci95 == pytest.approx(ppi.ci95, abs=1e-9)
        assert matrix.ci95 == pytest.approx(ppi.ci95, abs=1e-9)


def test_in_a_sample_drawn_by_another_judges_labels_they_do_not() -> None:
    rng = np.random.default_rng(3)
    world = binary(0.2, 0.8, 0.85)
    items = transcripts(world, rng)
    sample = sampled(world, items, rng, relabelled(binary(0.2, 0.7, 0.8), items, rng))
    gladen, ppi = (correction(resamples(sample))[1].share for correction in (rogan_gladen_shares, ppi_shares))
    assert gladen.value != pytest.approx(ppi.value, abs=1e-3)
    assert gladen.value == pytest.approx(0.2, abs=0.06)
    assert ppi.value == pytest.approx(0.2, abs=0.06)


def test_a_judge_no_better_than_chance_leaves_nothing_to_divide_by() -> None:
    guesses = [*block("d", 1, {1: 10, 0: 20}), *block("d", 0, {1: 10, 0: 20})]
    found = resamples(items_of(guesses))
    gladen = rogan_gladen_shares(found)[1]
    assert (gladen.share.value, gladen.share.ci95, gladen.bias.difference) == (None, None, None)
    assert matrix_shares(found)[1].share.value is None
    # Its labels are of no use, but people's still are.
    assert ppi_shares(found)[1].share.value == pytest.approx(1 / 3)


def test_a_category_that_people_never_used() -> None:
    found = resamples(items_of([*block("d", 1, {0: 20}), *block("d", 0, {0: 20})]))
    assert rogan_gladen_shares(found)[1].share.value is None
    for correction in matrix_shares, ppi_shares:
        share = correction(found)[1].share
        assert share.value == 0.0
        assert share.ci95 is not None
        assert share.ci95.low == 0.0
        assert 0.02 < share.ci95.high < 0.2


def test_a_domain_that_people_have_not_seen_leaves_no_mean() -> None:
    found = resamples(items_of(HUNDRED + block("e", 1, {}, unseen=5)))
    for correction in CORRECTIONS:
        assert correction(found)[1].share.value is None
    assert ppi_shares(found)[1].by_domain["d"].value == pytest.approx(0.24)


def test_no_item_at_all_gives_no_number() -> None:
    nothing = items_of(HUNDRED).where(np.zeros(100, bool))
    for correction in CORRECTIONS:
        share = correction(resamples(nothing))[1].share
        assert share == LabelShare(None, None, "none: no value", None, None, 0, 0, 0)
    assert uncorrected_shares(nothing)[1].share.value is None


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_refusals_widen_the_bounds_and_move_no_share(correction: Correction) -> None:
    # 100 items with a label, 25 without: from 24 of 125 to 49 of 125.
    found = correction(resamples(items_of(HUNDRED + REFUSED)))[1].share
    assert found.value == pytest.approx(0.24)
    assert found.bounds == pytest.approx((0.192, 0.392))
    assert (found.items, found.missing) == (125, 25)
    assert found.ci95 is not None
    assert found.ci95_bounds is not None
    assert found.ci95_bounds.low < 0.192
    assert found.ci95_bounds.high > 0.392


def test_items_that_people_could_not_label_widen_the_bounds_too() -> None:
    # Of the judge's 20, people were shown 10 and could not label 2 of them.
    items = [*block("d", 1, {1: 6, 0: 2, MISSING: 2}, unseen=10), *block("d", 0, {1: 1, 0: 9}, unseen=70)]
    found = ppi_shares(resamples(items_of(items)))[1].share
    assert found.value == pytest.approx((20 * 6 / 8 + 8) / 100)
    assert found.bounds is not None
    assert found.bounds.high - found.bounds.low == pytest.approx(20 * 2 / 10 / 100)


def test_a_stratum_of_which_people_saw_nothing_is_unknown() -> None:
    found = ppi_shares(resamples(items_of(HUNDRED + block("d", 2, {}, unseen=25), 3)))[1].share
    assert found.value == pytest.approx(0.24)
    assert found.bounds == pytest.approx((0.192, 0.392))


def test_the_uncorrected_share_and_its_bounds_by_hand() -> None:
    no, yes = uncorrected_shares(items_of(HUNDRED + REFUSED))
    assert (yes.share.value, no.share.value) == (0.2, 0.8)
    assert yes.share.bounds == pytest.approx((0.16, 0.36))
    assert no.share.bounds == pytest.approx((0.64, 0.84))
    assert (yes.share.items, yes.share.missing, yes.share.labelled) == (125, 25, None)
    assert yes.share.ci95 is not None
    assert yes.share.ci95_bounds is not None
    assert yes.share.ci95_bounds.low < yes.share.ci95.low < 0.16
    assert yes.share.ci95.high < 0.36 < yes.share.ci95_bounds.high
    assert yes.by_domain["d"] == yes.share


def test_the_uncorrected_share_is_reported_as_biased_if_its_interval_misses_the_corrected_one() -> None:
    def share(value: float | None, ci95: Interval | None) -> LabelShare:
        return LabelShare(value, ci95, "", None, None, 100, 0)

    raw = share(0.30, Interval(0.25, 0.35))
    assert misses(raw, share(0.24, None))
    assert not misses(raw, share(0.25, None))
    assert misses(raw, share(0.36, None))
    assert misses(raw, share(None, None)) is None
    assert misses(share(0.3, None), share(0.2, None)) is None


points = arrays.arrays(float, (1, 4), elements=st.floats(-3, 3))


@given(points)
def test_the_nearest_point_of_the_simplex(point: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    (found,) = on_simplex(point)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    # Nearest: no direction to a corner leads closer (the first-order condition of a convex problem).
    away = found - point[0]
    assert (np.eye(4) @ away - found @ away >= -1e-9).all()


def test_the_simplex_by_hand() -> None:
    given = np.array([[0.2, 0.8], [0.5, 0.7], [-1.0, 3.0], [0.3, -np.inf]])
    expected = np.array([[0.2, 0.8], [0.4, 0.6], [0.0, 1.0], [1.0, 0.0]])
    assert on_simplex(given) == pytest.approx(expected)
