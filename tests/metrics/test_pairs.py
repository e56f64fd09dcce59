"""The candidate's share with the base's other tasks as a covariate: by hand, and in simulated populations."""

from math import sqrt

import numpy as np
import pytest

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.noninferiority import Tails, worst_cases
from propensitybench.metrics.pairs import PairedOutcomes, over_all_tasks, slope
from propensitybench.metrics.sample import ClusteredSample
from validation.gates import simulate


def pairs_of(
    domain: list[int], base: list[float], candidate: list[float]
) -> tuple[PairedOutcomes, Numbers, Numbers]:
    """A scenario for each task of the base; the candidate has the first ones."""
    sample = ClusteredSample(np.array(domain), np.arange(len(domain)))
    first, second = np.array(base), np.zeros(len(base))
    second[: len(candidate)] = candidate
    played = np.arange(len(base)) < len(candidate)
    return PairedOutcomes(sample, np.stack([first] * 2), np.stack([second] * 2), played), first, second


def test_the_estimate_by_hand() -> None:
    """Two domains, two of four tasks of each played: 1/2 + k (1/4 - 1/2) and 1/2 + k (3/4 - 1/2), k = 1/2."""
    base = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    pairs, b, c = pairs_of([0, 0, 1, 1, 0, 0, 1, 1], base, [1.0, 0.0, 0.5, 0.5])
    assert slope(pairs, b, c) == pytest.approx(0.5)
    values = over_all_tasks(pairs, b, c)
    assert pairs.sample.sums(values) / 4 == pytest.approx([0.5 - 0.5 * 0.25, 0.5 + 0.5 * 0.25])
    # The residuals 1/4 and -1/4 of domain 0 have twice their weight, since half of its tasks were played.
    expected = [0.375 + 0.5 * (b[0] - 0.25) + 2 * 0.25, 0.375 + 0.5 * (b[1] - 0.25) - 2 * 0.25]
    assert values[:2] == pytest.approx(expected)
    assert values[4:] == pytest.approx([0.25, 0.25, 0.75, 0.75])


def test_where_all_was_played_the_outcomes_are_the_candidates_own() -> None:
    pairs, b, c = pairs_of([0, 0, 1, 1], [1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])
    assert over_all_tasks(pairs, b, c).tolist() == c.tolist()


def test_a_copy_of_the_base_has_its_share() -> None:
    base = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    pairs, b, c = pairs_of([0] * 8, base, base[:4])
    assert over_all_tasks(pairs, b, c) == pytest.approx(b)


def test_a_copy_that_has_played_little_shows_little() -> None:
    base = [1.0, 0.0, 0.0] * 100
    pairs, _, _ = pairs_of([0] * 300, base, base[:30])
    cases = worst_cases(pairs)
    assert cases is not None
    assert cases.limits(Tails(0.05, 0.05)).high == pytest.approx(1 - 0.05 ** (1 / 30))


@pytest.mark.parametrize(
    ("candidate", "found"),
    [([1.0, 1.0, 0.0, 0.0], 0.0), ([1.0, 1.0, 1.0, 1.0], 0.0), ([0.0, 0.0, 1.0, 1.0], 1.0)],
)
def test_the_slope_is_a_share(candidate: list[float], found: float) -> None:
    pairs, b, c = pairs_of([0] * 6, [0.0, 0.0, 0.5, 0.5, 1.0, 0.0], candidate)
    assert slope(pairs, b, c) == found


def test_without_the_unscored_the_order_stays() -> None:
    pairs, _, _ = pairs_of([0, 0, 1, 1, 0, 1], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    pairs.candidate[1, 1] = 1.0
    pairs.base[1, 4] = 1.0
    kept = pairs.filter(~pairs.missing)
    assert kept.is_known
    assert kept.base[0].tolist() == [1.0, 1.0, 0.0, 1.0]
    assert kept.candidate[0, kept.played].tolist() == [1.0, 0.0]
    assert kept.sample.domain[kept.played].tolist() == [0, 1]
    assert pairs.missing.tolist() == [False, True, False, False, True, False]


def test_a_domain_of_which_nothing_is_scored_is_left_out_of_the_slope() -> None:
    pairs, _, _ = pairs_of([0, 1] * 6, [1.0, 0.0, 0.0, 1.0] * 3, [1.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    pairs.candidate[0, 1::2], pairs.candidate[1, 1::2] = 0.0, 1.0
    known = pairs.filter(~pairs.missing)
    assert slope(known, known.base[0], known.candidate[0]) == 1.0
    assert worst_cases(known) is None


@pytest.mark.slow
@pytest.mark.parametrize("base", [0.05, 0.5])
def test_the_estimate_is_unbiased_its_error_is_stated_and_smaller(base: float) -> None:
    """On 30 % of the full data set. The candidate's true share is 3 points above the base's."""
    rng, count, replicates = np.random.default_rng(7), 1762, 400
    estimates, errors, plain = [], [], []
    for _ in range(replicates):
        pairs = simulate(base, 0.03, rng).first(count)
        cases = worst_cases(pairs)
        assert cases is not None
        estimates.append(cases.low.shares[1] - cases.low.shares[0])
        errors.append(cases.low.whole.error)
        both = pairs.filter(pairs.played)
        found = both.sample.mean(both.candidate[0] - both.base[0]).spread
        assert found is not None
        plain.append(found.error)
    true_error = float(np.std(estimates))
    assert float(np.mean(estimates)) == pytest.approx(0.03, abs=3 * true_error / sqrt(replicates))
    assert float(np.mean(errors)) == pytest.approx(true_error, rel=3 / sqrt(2 * replicates))
    assert float(np.mean(errors)) < 0.92 * float(np.mean(plain))


def test_tasks_that_the_base_alone_has_lost_widen_the_limits() -> None:
    rng = np.random.default_rng(3)
    base, candidate = (rng.random(600) < 0.3).astype(float), (rng.random(200) < 0.3).astype(float)
    pairs, _, _ = pairs_of([0, 1] * 300, base.tolist(), candidate.tolist())
    lost = pairs._replace(base=pairs.base.copy())
    lost.base[0, 500:], lost.base[1, 500:] = 0.0, 1.0
    known, unknown = worst_cases(pairs), worst_cases(lost)
    assert known is not None
    assert unknown is not None
    tails = Tails(0.05, 0.05)
    ends = [*unknown.limits(tails), *known.limits(tails)]
    assert ends[0] < ends[2] < ends[3] < ends[1]  # type: ignore[operator]
