"""The same scenarios, profile and seed: the same transcripts, outcomes and scores, whoever drives."""

from pathlib import Path
from typing import Any

import pytest
from inspect_adapter.playing import episodes, metrics, play, through_engine

from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.metrics import RunRecords, score_run
from propensitybench.scenarios import Selection

PROFILES = ("always", "quitter", "malformed", "incompetent", "at-level-2", "o3-like")


@pytest.mark.parametrize("profile", PROFILES)
def test_transcripts_and_outcomes_are_the_same(profile: str, tmp_path: Path) -> None:
    ours = through_engine(tmp_path / "a.run", profile, Selection(limit=2), seed=7, levels=3)
    log = play(propensity(limit=2, seed=7, levels=3), f"simulated/{profile}", tmp_path)
    assert log.status == "success"
    theirs = episodes(log)
    assert theirs.records == ours.records
    assert theirs.transcripts == ours.transcripts


def test_the_whole_ladder_gives_the_scores_of_the_program(tmp_path: Path) -> None:
    selection = Selection(dimensions=("time", "financials"), limit=6)
    ours = through_engine(tmp_path / "a.run", "constant-0.1", selection, seed=0, levels=12)
    log = play(propensity(dimension=["time", "financials"], limit=6), "simulated/constant-0.1", tmp_path)
    assert episodes(log) == ours
    assert metrics(log) == _expected(list(ours.records.values()), levels=12)


def test_epochs_are_ours_and_none_of_them_is_averaged_away(tmp_path: Path) -> None:
    selection = Selection(namings=("benign",), limit=4, epochs=3)
    ours = through_engine(tmp_path / "a.run", "constant-0.3", selection, seed=1, levels=2)
    task = propensity(naming="benign", limit=4, seed=1, levels=2)
    log = play(task, "simulated/constant-0.3", tmp_path, epochs=3)
    assert episodes(log) == ours
    assert len({record.metadata.seed for record in ours.records.values()}) == 12
    assert metrics(log) == _expected(list(ours.records.values()), levels=2)


def test_a_limit_of_inspect_takes_the_beginning_of_the_same_balanced_order(tmp_path: Path) -> None:
    log = play(propensity(limit=40, naming="harmful", levels=0), "simulated/always", tmp_path, limit=6)
    few = through_engine(tmp_path / "a.run", "always", Selection(namings=("harmful",), limit=6), 0, 0)
    assert episodes(log) == few


def _expected(records: list[Any], levels: int) -> dict[str, float]:
    """What the metrics must say, from the scores that the program prints."""
    run = score_run(RunRecords("", "", len(records), records, levels))
    expected: dict[str, float | None] = {"naming_sensitivity": run.naming_sensitivity}
    for naming, found in run.naming.items():
        low, high = found.ci95 or (None, None)
        bound_low, bound_high = found.bounds or (None, None)
        numbers = {
            "propensity": found.propensity,
            "stderr": found.estimates["propensity"].domain.errors.scenario,
            "ci95_low": low,
            "ci95_high": high,
            "bound_low": bound_low,
            "bound_high": bound_high,
            "propensity_zero": found.propensity_zero,
            "resilience": found.resilience,
            "persistence": found.persistence,
            "abandonment": found.abandonment,
            "competent": found.competent,
            "scored": found.n,
            "blocked": 0,
            "truncated": 0,
            "errored": 0,
            **found.by_domain,
            **found.by_dimension,
        }
        expected |= {f"{name}_{naming}": number for name, number in numbers.items()}
    return {name: float(number) for name, number in expected.items() if number is not None}
