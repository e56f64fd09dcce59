"""A judge against people: tables and rates by hand, weighted for how the sample was drawn."""

import numpy as np
import pytest
from helpers.judged_items import HUNDRED, REFUSED, block, items_of

from propensitybench.metrics.judge_error import Confusion, accuracy, confusion
from propensitybench.metrics.judged import MISSING, Judged, Resamples

DRAWS = 400


def resamples(sample: Judged, seed: int = 0) -> Resamples:
    return Resamples(sample, np.random.default_rng(seed), DRAWS)


def flat(found: Confusion) -> list[float]:
    return [share for row in found.shares or [] for share in row]


def test_each_item_that_people_see_stands_for_its_stratum() -> None:
    sample = items_of(HUNDRED)
    assert set(sample.weight[sample.labelled & (sample.judge == 1)]) == {2.0}
    assert set(sample.weight[sample.labelled & (sample.judge == 0)]) == {8.0}
    assert sample.weight.sum() == 100


def test_the_table_by_hand() -> None:
    found = confusion(items_of(HUNDRED))
    assert found.counts == [[9, 2], [1, 8]]
    assert flat(found) == pytest.approx([0.72, 0.04, 0.08, 0.16])


def test_domains_have_equal_weight_in_the_table_whatever_their_size() -> None:
    large = block("e", 1, {1: 5}, unseen=495) + block("e", 0, {0: 5}, unseen=495)
    found = confusion(items_of(HUNDRED + large))
    assert flat(found) == pytest.approx([0.36 + 0.25, 0.02, 0.04, 0.08 + 0.25])


def test_labels_that_are_missing_are_counted_and_in_no_cell() -> None:
    drawn = [*block("d", MISSING, {0: 1, 1: 2}), *block("d", 1, {MISSING: 4})]
    found = confusion(items_of(HUNDRED + drawn))
    assert found == Confusion([[9, 2], [1, 8]], found.shares, judge_missing=[1, 2], people_missing=4)
    # 24 items that the judge labels 1 are now represented by 10.
    assert flat(found) == pytest.approx([72 / 104, 4.8 / 104, 8 / 104, 19.2 / 104])


def test_a_domain_that_people_have_not_seen_leaves_no_table() -> None:
    assert confusion(items_of(HUNDRED + block("e", 1, {}, unseen=5))).shares is None


def test_sensitivity_and_specificity_by_hand() -> None:
    no, yes = accuracy(resamples(items_of(HUNDRED)))
    assert yes.sensitivity.value == pytest.approx(16 / 24)
    assert yes.specificity.value == pytest.approx(72 / 76)
    assert (yes.sensitivity.items, yes.specificity.items) == (9, 11)
    assert no.sensitivity.value == pytest.approx(yes.specificity.value)
    assert no.specificity.value == pytest.approx(yes.sensitivity.value)


def test_the_interval_of_a_rate_is_jeffreys_where_scenarios_have_one_item() -> None:
    # All 20 + 20 items are seen; of 20 that the judge labels 1, people label 15 so.
    sample = items_of([*block("d", 1, {1: 15, 0: 5}), *block("d", 0, {0: 20})])
    found = accuracy(Resamples(sample, np.random.default_rng(0), 20_000))[0].sensitivity
    assert found.value == 20 / 25
    # Without the prior and the expansion: Beta(20, 5), standard deviation .078.
    assert found.ci95 is not None
    assert (found.ci95.high - found.ci95.low) / 4 == pytest.approx(0.078, rel=0.15)


def test_items_of_a_scenario_are_worth_less_than_as_many_scenarios() -> None:
    items = [*block("d", 1, {1: 40, 0: 40}), *block("d", 0, {0: 40, 1: 40})]
    alone, together = (accuracy(resamples(items_of(items, each=size)))[1].sensitivity for size in (1, 4))
    assert alone.value == together.value == 0.5
    assert alone.ci95 is not None
    assert together.ci95 is not None
    ratio = (together.ci95.high - together.ci95.low) / (alone.ci95.high - alone.ci95.low)
    # All four items of a scenario agree, so that its error doubles, and a little more for fewer scenarios.
    assert ratio == pytest.approx(2.1, abs=0.2)


def test_a_rate_without_an_item_has_no_value_and_no_interval() -> None:
    sample = items_of([*block("d", 1, {0: 20}), *block("d", 0, {0: 20})])
    no, yes = accuracy(resamples(sample))
    assert yes.sensitivity == no.specificity == (None, None, "none: no item", 0)
    assert yes.specificity.value == 0.5


def test_a_rate_that_is_1_in_the_sample_is_not_taken_for_certain() -> None:
    sample = items_of([*block("d", 1, {1: 20}), *block("d", 0, {0: 20})])
    found = accuracy(resamples(sample))[1].sensitivity
    assert found.value == 1.0
    assert found.ci95 is not None
    assert 0.8 < found.ci95.low < 0.95
    assert found.ci95.high == 1.0


@pytest.mark.parametrize(
    ("items", "each", "reason"),
    [
        (HUNDRED[:20], 20, "none: a domain has a single cluster"),
        ([*block("d", 1, {1: 4, 0: 2}), *block("d", 0, {0: 5})], 1, "none: fewer than 10 degrees of freedom"),
    ],
)
def test_few_scenarios_leave_a_value_without_an_interval(
    items: list[tuple[str, int, int]], each: int, reason: str
) -> None:
    found = accuracy(resamples(items_of(items, each=each)))[1].sensitivity
    assert found.value is not None
    assert (found.ci95, found.method) == (None, reason)


def test_the_same_seed_gives_the_same_intervals() -> None:
    once, again, other = (accuracy(resamples(items_of(HUNDRED), seed)) for seed in (1, 1, 2))
    assert once == again
    assert once[1].sensitivity.ci95 != other[1].sensitivity.ci95


def test_refusals_change_no_rate() -> None:
    plain, refused = (accuracy(resamples(items_of(items)))[1] for items in (HUNDRED, HUNDRED + REFUSED))
    assert plain.sensitivity.value == pytest.approx(refused.sensitivity.value)
    assert plain.specificity.value == pytest.approx(refused.specificity.value)
