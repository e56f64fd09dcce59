"""Ranks with simultaneous intervals: cases worked out by hand, and their coverage in simulated boards."""

import pytest
from helpers.records import BIO, CYBER, ended

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.metrics.compare import propensity_difference
from propensitybench.metrics.ranks import rank_models
from propensitybench.metrics.table import Table, table_of
from validation.ranks import SETTINGS, Setting, coverage, true_ranks


def model(failing: int, of: int = 40, domain: str = BIO) -> Table:
    """A model that fails in the first tasks of so many scenarios."""
    return table_of(records(failing, of, domain))


def records(failing: int, of: int = 40, domain: str = BIO) -> list[EpisodeRecord]:
    return [
        ended(Outcome.MISALIGNED, 3, scenario=f"s{i:02}", domain=domain)
        if i < failing
        else ended(Outcome.RESISTED, 12, scenario=f"s{i:02}", domain=domain)
        for i in range(of)
    ]


def test_models_far_apart_have_one_rank_each() -> None:
    found = rank_models({"always": model(40), "never": model(0), "half": model(20)})
    assert {name: (one.rank, tuple(one.ci95)) for name, one in found.ranks.items()} == {
        "never": (1, (1, 1)),
        "half": (2, (2, 2)),
        "always": (3, (3, 3)),
    }


def test_order_of_close_models_is_left_open() -> None:
    found = rank_models({"a": model(10), "b": model(12), "always": model(40)})
    assert {name: tuple(one.ci95) for name, one in found.ranks.items()} == {
        "a": (1, 2),
        "b": (1, 2),
        "always": (3, 3),
    }
    assert [found.ranks[name].rank for name in ("a", "b", "always")] == [1, 2, 3]


def test_equal_models_share_the_mean_of_their_ranks() -> None:
    found = rank_models({"a": model(0), "b": model(20), "c": model(20)})
    assert [(one.rank, tuple(one.ci95)) for one in found.ranks.values()] == [
        (1, (1, 1)),
        (2.5, (2, 3)),
        (2.5, (2, 3)),
    ]
    assert found.differences[2].value == 0


def test_every_pair_gets_a_third_of_the_error_of_three_pairs() -> None:
    tables = {"a": model(4), "b": model(14), "c": model(20)}
    found = rank_models(tables)
    assert [(one.first, one.second) for one in found.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    alone = propensity_difference(tables["a"], tables["b"])
    assert alone.value == pytest.approx(10 / 40)
    assert found.differences[0].ci95 == alone.interval(0.025 / 3).interval
    # At the level of a single pair the difference would be further from 0.
    assert alone.ci95 is not None
    assert found.differences[0].ci95 is not None
    assert alone.ci95.low > found.differences[0].ci95.low


def test_model_without_a_propensity_has_no_rank_and_lost_tasks_leave_the_order_open() -> None:
    lost = [ended(Outcome.ERRORED, 0, scenario=f"c{i:02}", domain=CYBER) for i in range(40)]
    nothing = table_of([*records(10), *lost])
    half = [*records(0)[:20], *(ended(Outcome.BLOCKED, 0, scenario=f"s{i:02}") for i in range(20, 40))]
    found = rank_models({"nothing": nothing, "lossy": table_of(half), "some": model(10)})
    assert found.ranks.keys() == {"lossy", "some"}
    # Its scored tasks say 0 %, but the blocked ones allow up to 50 %.
    assert tuple(found.ranks["lossy"].ci95) == (1, 2)


def test_ranks_of_one_model_and_of_none() -> None:
    assert tuple(rank_models({"a": model(3)}).ranks["a"].ci95) == (1, 1)
    assert rank_models({}).ranks == {}


def test_true_ranks_of_equals() -> None:
    assert [tuple(one) for one in true_ranks((0.1, 0.2, 0.2, 0.4))] == [(1, 1), (2, 3), (2, 3), (4, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[:2], ids=lambda one: one.name)
def test_all_true_ranks_are_covered(setting: Setting) -> None:
    found = coverage(setting, replicates=120)
    assert found.share >= 0.95 - 3 * found.error
    assert found.length <= 8
