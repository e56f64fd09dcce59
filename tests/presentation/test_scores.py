"""Formatting of scores and comparisons."""

import msgspec
import pytest
from helpers.random_records import random_records
from helpers.records import blocked, errored, misaligned, resisted, truncated

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics import Interval, RunRecords, score_run
from propensitybench.metrics.analysis import analyse
from propensitybench.metrics.scores import LOOKS_SAFE, low_competence
from propensitybench.presentation import formats
from propensitybench.presentation.comparison import pair_rows, pairs
from propensitybench.presentation.scores import RunScores, summarise
from propensitybench.presentation.tables import overview
from propensitybench.presentation.words import missing

BOTH = [*random_records(3), *random_records(4, naming="benign")]


@pytest.mark.parametrize(
    ("p", "text"), [(None, "-"), (0.0004, "< .001"), (0.0312, ".031"), (0.5, ".500"), (1.0, "1.000")]
)
def test_p_values(p: float | None, text: str) -> None:
    assert formats.p_value(p) == text


def test_what_is_unknown_is_a_dash_and_never_0() -> None:
    unknown = [formats.percent(None), formats.span(None), formats.points(None), formats.number(None)]
    assert [*unknown, formats.signed(None)] == ["-"] * 5


def test_shares_are_percent_and_differences_percentage_points() -> None:
    assert formats.with_interval(0.123, Interval(0.1, 0.1526)) == "12.3 (10.0-15.3)"
    assert (formats.points(0.0512), formats.points(-0.2), formats.signed(-1.256)) == (
        "+5.1",
        "-20.0",
        "-1.26",
    )


def test_the_overview_has_the_published_names_and_one_row_for_each_naming() -> None:
    grid = overview([score_run(RunRecords("a.run", "simulated/m", len(BOTH), BOTH))])
    assert grid.columns == [
        "model",
        "naming",
        "tasks",
        "propensity (95 %)",
        "zero-pressure",
        "resilience",
        "persistence",
        "competence",
    ]
    assert [row[:2] for row in grid.rows] == [["m", "harmful"], ["", "benign"]]


def test_bounds_are_shown_as_soon_as_a_task_is_truncated() -> None:
    records = [misaligned(1, scenario="a"), resisted(scenario="b"), truncated(2, scenario="c")]
    run = score_run(RunRecords("a.run", "m", 3, records))
    grid = overview([run])
    assert dict(zip(grid.columns, grid.rows[0], strict=True))["bounds"] == "33.3-66.7"
    assert missing(run) == "a.run: of 3 tasks, 1 truncated (raise --max-tokens)"


def test_tasks_without_a_score_are_named_by_reason() -> None:
    records = [resisted(scenario="a"), blocked(scenario="b"), errored(scenario="c"), errored(scenario="d")]
    run = score_run(RunRecords("a.run", "m", 9, records))
    assert missing(run) == "a.run: of 9 tasks, 1 blocked, 2 errored, 5 not begun"
    assert missing(score_run(RunRecords("a.run", "m", 1, records[:1]))) == ""


def test_runs_of_different_lengths_are_never_called_by_the_same_name() -> None:
    records = [misaligned(1, scenario="a"), resisted(scenario="b")]
    runs = [score_run(RunRecords(f"{levels}", "m", 2, records, levels=levels)) for levels in (12, 3)]
    grid = overview(runs)
    assert grid.columns[3] == "propensity and PP@3 (95 %)"
    assert [row[0] for row in grid.rows] == ["m (propensity)", "m (PP@3)"]
    short = overview(runs[1:]).text()
    assert "PP@3" in short
    assert "propensity" not in short.lower()


def shown(*records: EpisodeRecord, model: str = "m") -> RunScores:
    return RunScores(**msgspec.structs.asdict(score_run(RunRecords("a.run", model, len(records), records))))


def test_the_short_form_has_at_most_thirty_lines_and_the_notebook_table_is_escaped() -> None:
    run = shown(*BOTH, errored(scenario="x"), model="<b>m</b>")
    assert len(repr(run).splitlines()) <= 30
    assert "&lt;b&gt;m&lt;/b&gt;" in run._repr_html_()
    assert "<b>m</b>" not in run._repr_html_()


def test_the_data_frame_has_every_estimate_with_its_interval() -> None:
    run = shown(*BOTH)
    frame = run.to_polars()
    headline = frame.filter(naming="harmful", part="all", estimand="propensity").row(0, named=True)
    scores = run.naming["harmful"]
    assert headline["value"] == scores.propensity
    assert (headline["low"], headline["high"]) == (scores.ci95 or (None, None))
    assert frame.filter(part="level", naming="harmful").height == 13
    assert frame.columns[:5] == ["model", "naming", "estimand", "part", "name"]


def test_pairs_are_second_minus_first() -> None:
    found = analyse(
        [
            RunRecords("a.run", "low", 4, [resisted(scenario=s) for s in "abcd"]),
            RunRecords("b.run", "high", 4, [misaligned(3, scenario=s) for s in "abcd"]),
        ]
    )
    (row,) = pairs(found).rows
    assert row == ["high - low", "harmful", "4", "+100.0 (-1.4 to +100.0)", ".125", ".125", "-10.00"]
    assert pair_rows(found)[0]["value"] == 1.0


@pytest.mark.parametrize(
    ("shares", "low"),
    [
        ({"harmful names": 0.0, "benign names": 0.125}, "0.0 % (harmful names) and 12.5 % (benign names)"),
        ({"harmful names": 0.9, "benign names": 0.499}, "49.9 % (benign names)"),
        ({"harmful names": 0.5, "benign names": 1.0}, ""),
        ({"harmful names": None}, ""),
        ({}, ""),
    ],
)
def test_competence_below_half_is_named(shares: dict[str, float | None], low: str) -> None:
    assert low_competence(shares) == (f"competence is only {low}: {LOOKS_SAFE}" if low else "")


def test_scores_and_their_summary_say_so() -> None:
    able = [resisted(scenario=name, right_calls=1) for name in "ab"]
    unable = [misaligned(0, scenario=name) for name in "abc"]
    for records, low in ((able, False), ([*able, *unable], True)):
        scores = score_run(RunRecords("a.run", "m", len(records), records))
        assert bool(scores.low_competence) == low
        assert summarise(scores).low_competence == scores.low_competence
