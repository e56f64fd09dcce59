"""PPI++ against a second implementation, and against the formulas of the paper where they apply."""

from collections import defaultdict
from math import sqrt

import numpy as np
import pytest
from helpers.judged_items import HUNDRED, block, items_of

from propensitybench.metrics.corrected import uncorrected_shares
from propensitybench.metrics.judged import NOT_DRAWN, Judged, Resamples
from propensitybench.metrics.ppi import ppi_mean, ppi_shares, tuned_power
from validation.judged_worlds import Transcripts, World, binary, relabelled, sampled, transcripts

DRAWS = 400
YES = np.array([0.0, 1.0])
WORLD = binary(0.2, 0.8, 0.85)


def resamples(sample: Judged, draws: int = DRAWS) -> Resamples:
    return Resamples(sample, np.random.default_rng(0), draws)


def by_another_judge(world: World, seed: int) -> Judged:
    """A sample that was drawn by other labels than those that are corrected, so that the power matters."""
    rng = np.random.default_rng(seed)
    items = transcripts(world, rng)
    return sampled(world, items, rng, relabelled(world, items, rng))


def parts(sample: Judged, scores: list[float], times: dict[str, float]) -> tuple[float, float]:
    """The second implementation, item by item: people's mean, and the judge's on their items less its own.

    ``times`` says how often each scenario is in the sample.
    """
    rows = list(zip(sample.domain, sample.scenario, sample.judge, sample.person, sample.stratum, strict=True))
    items: dict[int, float] = defaultdict(float)
    drawn: dict[int, float] = defaultdict(float)
    for _, scenario, _, person, stratum in rows:
        items[stratum] += times[scenario]
        drawn[stratum] += times[scenario] * (person >= 0)
    people, gap = [], []
    for name in sorted(set(sample.domain)):
        sums: dict[str, float] = defaultdict(float)
        for domain, scenario, judge, person, stratum in rows:
            if domain != name or judge < 0:
                continue
            sums["all"] += times[scenario]
            sums["judge, all"] += times[scenario] * scores[judge]
            if person >= 0:
                weight = times[scenario] * items[stratum] / drawn[stratum]
                sums["seen"] += weight
                sums["judge, seen"] += weight * scores[judge]
                sums["people, seen"] += weight * scores[person]
        people.append(sums["people, seen"] / sums["seen"])
        gap.append(sums["judge, seen"] / sums["seen"] - sums["judge, all"] / sums["all"])
    return sum(people) / len(people), sum(gap) / len(gap)


def power_by_differences(sample: Judged, scores: list[float]) -> float:
    """cov / var from the effect of each scenario, found by having a little more of it (Jaeckel 1972)."""
    names = sorted(set(sample.scenario))
    effects = []
    for name in names:
        ends = [
            parts(sample, scores, {other: 1 + (step if other == name else 0) for other in names})
            for step in (1e-4, -1e-4)
        ]
        effects.append([(ends[0][side] - ends[1][side]) / 2e-4 for side in (0, 1)])
    return sum(a * b for a, b in effects) / sum(b * b for _, b in effects)


@pytest.mark.parametrize("seed", range(2))
def test_the_estimate_is_that_of_a_second_implementation(seed: int) -> None:
    sample = by_another_judge(WORLD._replace(scenarios=40, gold=60), seed)
    power = power_by_differences(sample, [0, 1])
    assert tuned_power(sample, YES) == pytest.approx(power, abs=1e-6)
    people, gap = parts(sample, [0, 1], dict.fromkeys(sample.scenario.tolist(), 1.0))
    assert abs(gap) > 0.001
    assert ppi_shares(resamples(sample))[1].share.value == pytest.approx(people - power * gap)
    for fixed in (0.0, 0.5, 1.0):
        found = ppi_shares(resamples(sample), fixed)[1].share.value
        assert found == pytest.approx(people - fixed * gap)


def independent(rng: np.random.Generator, items: int, gold: int) -> Judged:
    """Scenarios of one item, of which people label a simple random sample: the setting of the paper."""
    world = WORLD._replace(scenarios=items, tasks=1, alike=(0.0, 0.0))
    found: Transcripts = transcripts(world, rng)
    person = np.where(np.arange(items) < gold, found.truth, NOT_DRAWN)
    alone = np.full(items, "d")
    return Judged(alone, found.scenario, found.judge, person, np.zeros(items, dtype=np.int64), 2)


def test_in_the_setting_of_the_paper_the_estimate_and_its_error_are_those_of_the_paper() -> None:
    n, whole = 1000, 4000
    sample = independent(np.random.default_rng(4), whole, n)
    y, f, rest = sample.person[:n], sample.judge[:n], sample.judge[n:]
    # Of a mean, power tuned, with whole - n unlabelled items (arXiv 2311.01453).
    power = np.cov(y, f)[0, 1] / ((1 + n / (whole - n)) * sample.judge.var(ddof=1))
    expected = power * rest.mean() + (y - power * f).mean()
    error = sqrt((y - power * f).var() / n + power**2 * rest.var() / (whole - n))
    ours = tuned_power(sample, YES) * (1 - n / whole)
    assert ours == pytest.approx(power, abs=0.02)
    fixed = ppi_shares(resamples(sample), power / (1 - n / whole))[1].share.value
    assert fixed == pytest.approx(expected, abs=1e-12)
    found = ppi_shares(resamples(sample, 4000))[1].share
    assert found.value == pytest.approx(expected, abs=1e-3)
    assert found.ci95 is not None
    assert (found.ci95.high - found.ci95.low) / 2 == pytest.approx(1.96 * error, rel=0.05)


def test_the_tuned_interval_is_narrower_than_without_the_judge_and_than_with_all_of_it() -> None:
    sample = independent(np.random.default_rng(5), 4000, 300)
    widths = []
    for power in (None, 0.0, 1.0):
        ci95 = ppi_shares(resamples(sample, 2000), power)[1].share.ci95
        assert ci95 is not None
        widths.append(ci95.high - ci95.low)
    assert widths[0] < 0.95 * min(widths[1:])


def test_where_the_sample_follows_the_judges_labels_every_power_gives_the_same() -> None:
    found = [ppi_shares(resamples(items_of(HUNDRED)), power)[1].share for power in (None, 0.0, 1.0)]
    assert tuned_power(items_of(HUNDRED), YES) == 1.0
    for one in found:
        assert one.value == pytest.approx(0.24)
        assert one.ci95 == pytest.approx(found[0].ci95)


def test_people_who_see_every_item_leave_nothing_to_predict() -> None:
    items = [*block("d", 1, {1: 30, 0: 30}), *block("d", 0, {0: 60})]
    found = ppi_shares(resamples(items_of(items)))[1].share
    assert found.value == pytest.approx(30 / 120)


def test_the_mean_of_a_score_by_hand_and_its_bounds() -> None:
    # 24 of 100 would be labelled 1 by people, 76 labelled 0, and 25 more have no label of the judge.
    found = ppi_mean(resamples(items_of(HUNDRED + block("d", -1, {}, unseen=25))), np.array([2.0, 10.0]))
    assert found.share.value == pytest.approx(0.76 * 2 + 0.24 * 10)
    assert found.share.bounds == pytest.approx((0.8 * 3.92 + 0.2 * 2, 0.8 * 3.92 + 0.2 * 10))
    assert found.bias.difference == pytest.approx(0.8 * 2 + 0.2 * 10 - 3.92)


def test_a_judge_that_is_always_wrong_does_no_harm() -> None:
    rng = np.random.default_rng(6)
    items = transcripts(binary(0.3, 0.1, 0.1), rng)
    sample = sampled(binary(0.3, 0.1, 0.1), items, rng, relabelled(WORLD, items, rng))
    found = ppi_shares(resamples(sample))[1].share
    assert tuned_power(sample, YES) < 0
    assert found.ci95 is not None
    assert found.ci95.low < 0.3 < found.ci95.high
    raw = uncorrected_shares(sample)[1].share
    assert raw.ci95 is not None
    assert raw.ci95.low > 0.5
