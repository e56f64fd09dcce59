"""Metrics of a user's own, against hand-computed means and against the propensity."""

from collections.abc import Mapping

import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics import RunRecords, ScoredRun, score_run
from propensitybench.metrics.measures import Unit
from propensitybench.metrics.own import OwnMetric


def scored(records: list[EpisodeRecord], values: Mapping[str, float], unit: Unit = "per task") -> ScoredRun:
    metric = OwnMetric(name="mine", label="mine", definition="a number", unit=unit, values=values)
    return score_run(RunRecords("a.run", "m", len(records), records, own_metrics=(metric,)))


def test_a_mean_is_over_domains_of_scenarios_of_epochs() -> None:
    records = [
        resisted(scenario="a", epoch=1),
        resisted(scenario="a", epoch=2),
        misaligned(3, scenario="b"),
        resisted(scenario="c"),
        resisted(scenario="d", domain=CHEM),
    ]
    # a has 1 and 3, so 2; b has no value; c has 5: (2 + 5) / 2 in the first domain, and 8 in the other.
    values = {"a.time.harmful.1": 1, "a.time.harmful.2": 3, "c.time.harmful.1": 5, "d.time.harmful.1": 8}
    scores = scored(records, values).naming["harmful"]
    assert scores.estimates["mine"].domain.value == pytest.approx((3.5 + 8) / 2)
    assert scores.estimates["mine"].task.value == pytest.approx((2 + 5 + 8) / 3)
    by_domain = scores.own_parts["mine"]["domain"]
    assert {name: found.domain.value for name, found in by_domain.items()} == {BIO: 3.5, CHEM: 8}


def test_a_value_of_one_epoch_counts_for_that_epoch_alone() -> None:
    records = [resisted(scenario="a", epoch=epoch) for epoch in (1, 2)] + [resisted(scenario="b")]
    scores = scored(records, {"a.time.harmful.1": 4, "b.time.harmful.1": 1}).naming["harmful"]
    assert scores.estimates["mine"].domain.value == pytest.approx((4 * 0.5 + 1) / 1.5)


@pytest.mark.parametrize("lost", [0, 3])
def test_the_share_of_misaligned_tasks_as_a_metric_of_ones_own_is_the_propensity(lost: int) -> None:
    records = [
        *(misaligned(2, scenario=f"m{n}", domain=(BIO, CHEM)[n % 2]) for n in range(5)),
        *(resisted(scenario=f"r{n}", domain=(BIO, CHEM)[n % 2]) for n in range(9)),
        *(errored(0, scenario=f"e{n}") for n in range(lost)),
    ]
    # Errored tasks have a value here too, which must count for nothing.
    values = {one.metadata.task: float(one.stats.outcome == "misaligned") for one in records}
    scores = scored(records, values, "proportion").naming["harmful"]
    own, propensity = scores.estimates["mine"].domain, scores.estimates["propensity"].domain
    assert own.value == pytest.approx(propensity.value)
    assert own.ci95 == pytest.approx(propensity.ci95)
    assert own.bounds == pytest.approx(propensity.bounds) if lost else own.bounds is None
    assert own.errors.scenario == pytest.approx(propensity.errors.scenario)


def test_where_tasks_are_lost_a_mean_of_numbers_has_no_interval() -> None:
    records = [resisted(scenario=f"r{n}") for n in range(20)]
    values = {one.metadata.task: float(n % 4 - 2) for n, one in enumerate(records)}
    whole = scored(records, values).naming["harmful"].estimates["mine"].domain
    assert whole.value == pytest.approx(-0.5)
    assert whole.ci95 is not None
    lost = scored([*records, errored(0, scenario="e")], values).naming["harmful"].estimates["mine"].domain
    assert lost.value == pytest.approx(-0.5)
    assert lost.ci95 is None


def test_a_metric_without_a_value_has_no_number() -> None:
    scores = scored([resisted(scenario="a"), errored(0, scenario="b")], {}).naming["harmful"]
    assert scores.estimates["mine"].domain.value is None
