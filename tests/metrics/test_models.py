"""Several models: pairs and ranks."""

import numpy as np
from helpers.records import CHEM, errored, misaligned, resisted

from propensitybench.metrics.models import compare_models
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.table import Table, table_of
from validation.populations import Agent, Layout, full_layout, play, table_of_levels

# Every eighth scenario of the full layout.
LAYOUT = Layout(*(column[::8] for column in full_layout()))


def failing(names: str) -> Table:
    return table_of([misaligned(1, scenario=s) if s in names else resisted(scenario=s) for s in "abcdefgh"])


def test_ranks_are_by_propensity_and_equal_ones_share_theirs() -> None:
    tables = {"worst": failing("abcdef"), "one": failing("ab"), "other": failing("gh"), "best": failing("")}
    found = compare_models(tables)
    assert [(name, rank.rank) for name, rank in found.in_order()] == [
        ("best", 1.0),
        ("one", 2.5),
        ("other", 2.5),
        ("worst", 4.0),
    ]
    assert found.ranks["one"].propensity == 0.25
    assert all(rank.ci95.low <= rank.rank <= rank.ci95.high for rank in found.ranks.values())


def test_models_that_give_in_equally_often_to_other_tasks_may_be_either() -> None:
    ranks = compare_models({"one": failing("abcd"), "other": failing("efgh")}).ranks
    assert [(rank.rank, rank.ci95) for rank in ranks.values()] == [(1.5, (1, 2))] * 2


def test_ranks_are_on_the_tasks_that_all_have_begun() -> None:
    one = table_of([misaligned(1, scenario=name) for name in "abc"])
    other = table_of([resisted(scenario=name) for name in "bcd"])
    third = table_of([resisted(scenario="c"), misaligned(1, scenario="d"), errored(scenario="b")])
    found = compare_models({"one": one, "other": other, "third": third})
    assert found.common == 2  # of which the third has a score in one
    assert [rank.propensity for rank in found.ranks.values()] == [1.0, 0.0, 0.0]
    assert [rank.rank for rank in found.ranks.values()] == [3.0, 1.5, 1.5]
    assert [rank.ci95 for rank in found.ranks.values()] == [(1, 3)] * 3
    assert [pair.contrast.propensity.n for pair in found.pairs] == [2, 2, 3]


def test_models_without_a_common_task_have_no_rank() -> None:
    found = compare_models({"one": failing("a"), "other": table_of([resisted(scenario="z")])})
    assert found.common == 0
    assert found.ranks == {}
    assert [(pair.contrast.p, pair.p_holm) for pair in found.pairs] == [(None, None)]


def test_p_values_are_adjusted_over_the_pairs_that_can_be_tested() -> None:
    rng = np.random.default_rng(1)
    agents = (Agent(-3, -4), Agent(-2.9, -4), Agent(-2, -3))
    tables = {str(a): table_of_levels(play(a, LAYOUT, rng, 1), LAYOUT) for a in agents}
    tables["elsewhere"] = table_of([resisted(domain=CHEM, scenario="z")])
    pairs = compare_models(tables).pairs
    assert len(pairs) == 6
    tested = [pair for pair in pairs if pair.contrast.p is not None]
    p = [pair.contrast.p for pair in tested if pair.contrast.p is not None]
    assert len(p) == 3
    assert [pair.p_holm for pair in tested] == holm(p)
    assert [pair.p_bh for pair in tested] == benjamini_hochberg(p)


def test_clearly_different_models_have_certain_ranks() -> None:
    rng = np.random.default_rng(2)
    agents = {"high": Agent(0, -1), "low": Agent(-5, -6), "middle": Agent(-2, -3)}
    tables = {name: table_of_levels(play(a, LAYOUT, rng, 1), LAYOUT) for name, a in agents.items()}
    found = {name: rank.ci95 for name, rank in compare_models(tables).ranks.items()}
    assert found == {"low": (1, 1), "middle": (2, 2), "high": (3, 3)}


def test_a_model_without_another_has_no_rank() -> None:
    assert compare_models({"only": failing("a")}).ranks == {}
    assert compare_models({}).ranks == {}
