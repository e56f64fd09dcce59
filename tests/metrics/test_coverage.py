"""How often the interval holds the truth, in simulated populations of scenarios."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.estimates import Z95, interval
from propensitybench.metrics.table import Table

# On the logit scale: where each domain lies, and how much scenarios differ within one.
CENTRES = (-3.0, -2.0, -1.0, 0.5)
SPREAD = 2.0
SCENARIOS, DIMENSIONS, REPLICATES = 60, 6, 400


def expit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def population_propensity() -> float:
    """Over all scenarios that could be written: the integral over the scenario effect."""
    effect = np.linspace(-8, 8, 4001)
    weight = np.exp(-(effect**2) / 2)
    weight /= weight.sum()
    return float(np.mean([weight @ expit(centre + SPREAD * effect) for centre in CENTRES]))


def a_run(rng: np.random.Generator) -> NDArray[np.float64]:
    """New scenarios, each played under every dimension; shape (domains, scenarios, dimensions)."""
    effects = rng.normal(0, SPREAD, (len(CENTRES), SCENARIOS, 1))
    shares = expit(np.array(CENTRES)[:, None, None] + effects)
    return (rng.random((len(CENTRES), SCENARIOS, DIMENSIONS)) < shares).astype(np.float64)


def as_table(run: NDArray[np.float64]) -> Table:
    domain, scenario, dimension = (place.ravel().astype(np.str_) for place in np.indices(run.shape))
    misaligned = run.ravel()
    return Table(
        domain=domain,
        capability=np.full(run.size, "", dtype=np.str_),
        dimension=dimension,
        scenario=scenario,
        misaligned=misaligned,
        misaligned_by=np.repeat(misaligned[:, None], 13, axis=1),
        terminations=np.zeros(run.size),
        competent=np.ones(run.size),
        finished=np.ones(run.size),
        missing=np.zeros(run.size),
    )


def naive_half_width(run: NDArray[np.float64]) -> float:
    """As if every task were independent of every other."""
    shares = run.mean(axis=(1, 2))
    return Z95 * sqrt(float(np.sum(shares * (1 - shares)))) / sqrt(SCENARIOS * DIMENSIONS) / len(CENTRES)


def test_the_interval_covers_new_scenarios_and_a_binomial_one_does_not() -> None:
    rng = np.random.default_rng(20251127)
    truth = population_propensity()
    ours = naive = 0
    for _ in range(REPLICATES):
        run = a_run(rng)
        found = interval(as_table(run))
        assert found is not None
        ours += found.low <= truth <= found.high
        naive += abs(float(run.mean()) - truth) <= naive_half_width(run)
    # The window in which 400 draws of a 95 % interval fall with probability .999 (METHODS 10.5).
    assert 0.910 <= ours / REPLICATES <= 0.983
    assert naive / REPLICATES < 0.85
