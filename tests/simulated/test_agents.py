"""Simulated agents in the real engine do exactly what their names say."""

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from statistics import fmean

import pytest
from simulated.playing import FEW, play_run

from propensitybench.engine import RunSpec
from propensitybench.episode import EpisodeRecord, Outcome, built_in_template
from propensitybench.metrics import score_naming
from propensitybench.scenarios.selection import Selection
from propensitybench.taxonomy import NAMINGS

Run = Callable[[str], list[EpisodeRecord]]
LEVELS = 13
# All of the built-in data while it is small; a balanced sample of it once it has grown.
PAIRS = Selection(limit=150)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Plays a few tasks under both namings."""

    def play(name: str) -> list[EpisodeRecord]:
        records = play_run(RunSpec(f"simulated/{name}", selection=FEW), tmp_path / "a.run")
        assert len(records) == 12
        return records

    return play


def test_never_resists_to_the_end_and_could_have_worked(run: Run) -> None:
    for record in run("never"):
        stats = record.stats
        assert stats.outcome is Outcome.RESISTED
        assert (stats.level, stats.levels_run) == (12, LEVELS)
        assert stats.competent
        assert stats.aligned_calls == stats.aligned_calls_right >= LEVELS
        assert (stats.argument_errors, stats.format_errors, stats.unknown_calls) == (0, 0, 0)


def test_always_gives_in_before_any_pressure_after_trying_to_work(run: Run) -> None:
    for record in run("always"):
        stats = record.stats
        assert (stats.outcome, stats.level, stats.levels_run) == (Outcome.MISALIGNED, 0, 0)
        assert stats.competent
        assert 1 <= stats.aligned_calls <= 2


@pytest.mark.parametrize("level", [0, 3, 12])
def test_at_level_gives_in_exactly_there(run: Run, level: int) -> None:
    records = run(f"at-level-{level}")
    outcomes = {(record.stats.outcome, record.stats.level) for record in records}
    assert outcomes == {(Outcome.MISALIGNED, level)}
    assert all(record.stats.aligned_calls > level for record in records)


def test_quitter_ends_every_level_at_once_without_a_call(run: Run) -> None:
    for record in run("quitter"):
        stats = record.stats
        assert stats.outcome is Outcome.RESISTED
        assert stats.terminations == stats.turns == stats.messages == LEVELS
        calls = (
            stats.aligned_calls,
            stats.getter_calls,
            stats.argument_errors,
            stats.unknown_calls,
            stats.withdrawn_calls,
            stats.ignored_calls,
        )
        assert calls == (0,) * 6
        assert not stats.competent


def test_malformed_spends_every_level_on_three_unreadable_messages(run: Run) -> None:
    for record in run("malformed"):
        stats = record.stats
        assert stats.outcome is Outcome.RESISTED
        assert stats.format_errors == stats.turns == LEVELS * 3
        assert (stats.messages, stats.terminations, stats.aligned_calls) == (0, 0, 0)
        assert not stats.competent


def test_incompetent_resists_without_one_right_call(run: Run) -> None:
    for record in run("incompetent"):
        stats = record.stats
        assert stats.outcome is Outcome.RESISTED
        assert stats.argument_errors > 0
        assert (stats.getter_calls, stats.aligned_calls_right) == (0, 0)
        assert not stats.competent


def test_a_run_of_incompetents_scores_zero_and_says_that_it_is_not_competence(run: Run) -> None:
    scores = score_naming([r for r in run("incompetent") if r.metadata.naming == "harmful"])
    assert (scores.propensity, scores.competent) == (0.0, 0.0)


def withstood(record: EpisodeRecord) -> int:
    """Levels that the agent withstood: METHODS' W."""
    return record.stats.level if record.stats.outcome is Outcome.MISALIGNED else LEVELS


@pytest.mark.slow
def test_a_constant_hazard_is_measured_as_such(tmp_path: Path) -> None:
    records = play_run(RunSpec("simulated/constant-0.1", selection=PAIRS), tmp_path / "a.run")
    stays = 0.9
    share = 1 - stays**LEVELS
    chances = [0.1 * stays**level for level in range(LEVELS)] + [stays**LEVELS]
    mean = sum(stays ** (level + 1) for level in range(LEVELS))
    assert mean == pytest.approx(6.7123, abs=1e-4)
    spread = sqrt(sum(chance * (level - mean) ** 2 for level, chance in enumerate(chances)))
    for naming in NAMINGS:
        mine = [record for record in records if record.metadata.naming == naming]
        scores = score_naming(mine)
        assert scores.propensity is not None
        assert scores.n == len(mine) == len(records) / 2
        assert abs(scores.propensity - share) <= 4 * sqrt(share * (1 - share) / len(mine))
        assert abs(fmean(map(withstood, mine)) - mean) <= 4 * spread / sqrt(len(mine))


def test_agents_play_under_a_policy_that_names_no_tool(tmp_path: Path) -> None:
    unnamed = RunSpec("simulated/at-level-3", selection=FEW, template=built_in_template("unnamed"))
    records = play_run(unnamed, tmp_path / "a.run")
    assert {(record.stats.outcome, record.stats.level) for record in records} == {(Outcome.MISALIGNED, 3)}
