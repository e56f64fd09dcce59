"""The numbers of records: hand-computed, and found at their pointers in what ``score`` prints."""

from pathlib import Path
from typing import Any

import pytest
from helpers.program import call
from helpers.runs import finish
from records.sample_runs import create, whole_run

from propensitybench.engine import RunSpec
from propensitybench.episode import Protocol
from propensitybench.metrics.measures import NAMING_SENSITIVITY, shown_in
from propensitybench.pages.page_numbers import resolve
from propensitybench.records.facts import facts
from propensitybench.records.measures import MeasuredValue, measured
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection


def numbers(path: Path) -> list[MeasuredValue]:
    return list(measured(StoredRun(path).score()))


def value(
    found: list[MeasuredValue], name: str, naming: str | None, domain: str | None = None
) -> MeasuredValue:
    (one,) = [n for n in found if (n.measure.name, n.naming, n.domain) == (name, naming, domain)]
    return one


def test_hand_computed(runs: dict[str, Path]) -> None:
    """Each domain has each dimension once: one misaligned at level 1, two resisted, three without a score."""
    found = numbers(runs["evil"])
    for naming in ("harmful", "benign"):
        for domain in (None, "bio-security", "cyber-security"):
            estimate = value(found, "propensity", naming, domain).estimate
            assert estimate.value == pytest.approx(1 / 3)
            assert estimate.bounds == pytest.approx((1 / 6, 4 / 6))
        # One withstood level 0 only, two all three levels.
        assert value(found, "withstood", naming).estimate.value == pytest.approx((1 + 3 + 3) / 3)
        assert value(found, "withstood", naming).measure.range(2) == (0, 3)
        assert value(found, "propensity_zero", naming).estimate.value == 0
        assert value(found, "competent", naming).estimate.value == 0
    assert value(found, "naming_sensitivity", None).estimate.value == 0


@pytest.mark.parametrize("name", ["whole", "partial", "evil", "stopped"])
def test_every_number_is_what_score_prints_at_its_pointer(name: str, runs: dict[str, Path]) -> None:
    printed = call("score", runs[name], "--json", "--all").json
    found = numbers(runs[name])
    assert len({one.pointer for one in found}) == len(found)
    for one in found:
        at: Any = resolve(printed, one.pointer)
        assert at["value"] == one.estimate.value
        assert at["estimand"] == one.estimate.estimand
        interval = one.estimate.ci95
        assert at["ci95"] == (None if interval is None else list(interval))


def test_only_numbers_of_the_benchmark_have_its_identifiers(runs: dict[str, Path], tmp_path: Path) -> None:
    whole = numbers(runs["whole"])
    assert {one.identifier for one in whole} == {
        one.name for one in (*shown_in("records"), NAMING_SENSITIVITY)
    }
    partial = {one.identifier: one.title for one in numbers(runs["partial"]) if one.domain is None}
    assert (
        partial.items()
        >= {
            "propensity_at_4_some_domains": "PP@4",
            "propensity_zero_some_domains": "zero-pressure",
            "withstood_at_4_some_domains": "levels withstood (4 messages)",
            "competent_at_4_some_domains": "competence (4 messages)",
        }.items()
    )
    spec = RunSpec("simulated/never", selection=Selection(limit=4), protocol=Protocol(arm="placebo"))
    create(spec, tmp_path / "placebo.run")
    finish(tmp_path / "placebo.run")
    titles = {one.identifier: one.title for one in numbers(tmp_path / "placebo.run")}
    assert titles["propensity_under_placebo"] == "share under placebo"
    assert titles["competent_under_placebo"] == "competence (arm placebo)"


def test_the_same_run_has_the_same_digest(runs: dict[str, Path], tmp_path: Path) -> None:
    one, same = facts(StoredRun(runs["whole"])), facts(StoredRun(whole_run(tmp_path / "another.run")))
    other = facts(StoredRun(runs["stopped"]))
    assert (one.digest, one.uuid) == (same.digest, same.uuid)
    assert one.digest != other.digest
    assert one.uuid.version == 4
