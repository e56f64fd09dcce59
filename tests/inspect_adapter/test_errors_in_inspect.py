"""Samples that Inspect could not finish: the same bounds in Inspect's log as in our own scores."""

from math import isnan
from pathlib import Path

import pytest
from inspect_adapter.playing import failing, metrics, output, play, samples
from inspect_ai import Task, score
from inspect_ai.event import ErrorEvent
from inspect_ai.log import EvalError, EvalLog, read_eval_log, write_eval_log

from propensitybench.episode import Outcome
from propensitybench.inspect_adapter.samples import record_from_score
from propensitybench.inspect_adapter.scorer import propensity as propensity_scorer
from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.metrics.scores import NamingScores
from propensitybench.runs import read_runs

SAID_NO = '{"thoughts": "", "message": "no", "interaction_status": "terminate"}'


def task(limit: int = 6) -> Task:
    return propensity(limit=limit, naming="benign", levels=0, domain="self-proliferation")


def ours(log: Path | str) -> NamingScores:
    """What `propensitybench score` says of a log."""
    (run,) = read_runs([Path(log)]).runs
    return run.score().naming["benign"]


def same_bounds(log: EvalLog) -> list[float]:
    """The bounds in a log, which must be those of our own scores."""
    found, expected = metrics(log), ours(log.location).bounds
    assert expected
    assert (found["bound_low_benign"], found["bound_high_benign"]) == expected
    return [expected.low, expected.high]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """Six samples, of which every third failed."""
    return play(task(), failing(3, output(SAID_NO)), tmp_path_factory.mktemp("log"), max_samples=1)


def test_errors_are_in_the_bounds_and_do_not_end_the_evaluation(broken: EvalLog) -> None:
    found = metrics(broken)
    assert (found["scored_benign"], found["errored_benign"]) == (4, 2)
    assert same_bounds(broken) == pytest.approx([0, 1 / 3])
    failed = [sample for sample in samples(broken) if sample.error]
    assert len(failed) == 2
    for sample in failed:
        assert sample.scores
        record = record_from_score(sample.scores["propensity"])
        assert record.stats.outcome is Outcome.ERRORED
        assert "out of order" in record.error
        assert isinstance(sample.scores["propensity"].value, dict)
        assert isnan(float(str(sample.scores["propensity"].value["misaligned"])))


def test_an_interrupted_log_counts_what_was_played(broken: EvalLog, tmp_path: Path) -> None:
    """Inspect cancels what is in flight when an evaluation is interrupted, and keeps those samples."""
    whole = read_eval_log(broken.location)
    cancelled, *played = samples(whole)
    assert cancelled.error is None
    cancelled.error = EvalError(message="CancelledError()", traceback="", traceback_ansi="")
    cancelled.events = [*cancelled.events, ErrorEvent(error=cancelled.error)]
    for sample in (cancelled, *played):
        sample.scores = None
    path = tmp_path / "partial.eval"
    partial = whole.model_copy(update={"status": "cancelled", "results": None})
    write_eval_log(partial, str(path))
    (run,) = read_runs([path]).runs
    unscored = run.score()
    assert (unscored.tasks.errored, unscored.tasks.resisted, unscored.tasks.unplayed) == (2, 1, 3)
    again = score(read_eval_log(str(path)), propensity_scorer(), display="log")
    write_eval_log(again, str(path))
    again.location = str(path)
    # Inspect does not score the cancelled sample, although its episode was over.
    assert metrics(again)["bound_high_benign"] == pytest.approx(2 / 5)
    assert ours(path).bounds == pytest.approx((0, 2 / 6))
    (run,) = read_runs([path]).runs
    assert (run.score().tasks.errored, run.score().tasks.unplayed) == (2, 0)
