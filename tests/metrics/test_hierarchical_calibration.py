"""Calibration of the hierarchical model by simulation (Talts et al. 2018)."""

import pytest

from validation.hierarchical import p_uniform, ranks, replicates, small_layout

REPLICATES = 20
# Over fourteen quantities, chance alone is below this once in seventy runs of the test, so once for its seed.
MIN_P = 0.001


@pytest.mark.slow
def test_true_values_are_uniform_among_the_draws_and_too_narrow_a_posterior_is_found() -> None:
    pairs = list(replicates(small_layout(), REPLICATES, seed=20))
    found = {name: p_uniform(places) for name, places in ranks(iter(pairs)).items()}
    assert len(found) == 14
    assert min(found.values()) > MIN_P, found
    # The same test rejects draws that are narrower by three fifths.
    narrowed = {name: p_uniform(places) for name, places in ranks(iter(pairs), narrowed=0.4).items()}
    assert sum(p < MIN_P for p in narrowed.values()) > len(narrowed) / 2, narrowed
