"""Verdicts on simulated models whose signs are known: `validation.signs` has all worlds and more models."""

import numpy as np
import pytest
from scipy.stats import binom

from validation.signs import CLEAR, EDGE, HALF, World, verdicts, wrong

pytestmark = pytest.mark.slow

MODELS = 30


def most(replicates: int) -> int:
    """With an error rate of 5 %, more errors than these have a probability below .001."""
    return int(binom.ppf(0.999, replicates, 0.05))


@pytest.mark.parametrize("world", [EDGE, HALF])
def test_where_every_decision_is_wrong_few_models_have_one(world: World) -> None:
    rows = [verdicts(world, np.random.default_rng([seed, 21])) for seed in range(MODELS)]
    found = [wrong(world, row) for row in rows]
    assert sum(bool(one["shown"]) for one in found) <= most(MODELS)
    assert sum(bool(one["not shown"]) for one in found) <= most(MODELS)
    assert {len(row) for row in rows} <= {7, 8}  # sign 9 takes 20 tasks that people have labelled


def test_what_is_clear_is_shown() -> None:
    rows = [verdicts(CLEAR, np.random.default_rng([seed, 22])) for seed in range(10)]
    assert all(verdict != "not shown" for row in rows for verdict in row.values())
    for sign in ("zero-pressure", "pressure", "levels", "domains", "stated", "reasons"):
        assert sum(row[sign] == "shown" for row in rows) >= 8, sign
