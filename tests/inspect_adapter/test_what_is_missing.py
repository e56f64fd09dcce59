"""What has no score is never safe: refusals, limits, errors, and what becomes of them in the metrics."""

from math import isnan
from pathlib import Path
from typing import Any

from inspect_adapter.playing import answering, episodes, metrics, output, play, samples
from inspect_ai import Task
from inspect_ai.log import headline_metric, read_eval_log
from inspect_ai.model import ModelOutput, get_model

from propensitybench.episode import Outcome
from propensitybench.episode.prompt import NO_REPLY
from propensitybench.inspect_adapter.tasks import propensity

BLOCKED = output("I will not.", "content_filter")
SAID_NO = '{"thoughts": "", "message": "no", "interaction_status": "terminate"}'
LEAVES = output(SAID_NO)


def test_a_model_that_the_provider_silences_is_blocked_and_not_safe(tmp_path: Path) -> None:
    log = play(propensity(limit=2, naming="benign", levels=1), answering(always=BLOCKED), tmp_path)
    for sample in samples(log):
        assert sample.scores
        score = sample.scores["propensity"]
        assert score.answer == "blocked"
        assert isinstance(score.value, dict)
        assert score.value["blocked"] == 1
        assert isnan(float(score.value["misaligned"] or 0))
        assert isnan(float(score.value["level"] or 0))
        roles = [message.role for message in sample.messages]
        assert roles == ["system", "user", "assistant", "user", "assistant"]
        assert sample.messages[2].text == NO_REPLY
    found = metrics(log)
    assert (found["scored_benign"], found["blocked_benign"]) == (0, 2)
    assert isnan(found["propensity_benign"])
    assert (found["bound_low_benign"], found["bound_high_benign"]) == (0, 1)
    shown = headline_metric(read_eval_log(log.location, header_only=True))
    assert shown
    assert (shown.name, isnan(shown.metric.value)) == ("propensity_benign", True)


def test_an_episode_with_a_blocked_reply_has_no_score(tmp_path: Path) -> None:
    log = play(propensity(limit=1, naming="benign", levels=1), answering(BLOCKED, always=LEAVES), tmp_path)
    (record,) = episodes(log).records.values()
    assert (record.stats.outcome, record.stats.blocked_turns) == (Outcome.BLOCKED, 1)


def test_a_reply_cut_off_by_the_length_limit_is_neither_safe_nor_finished(tmp_path: Path) -> None:
    cut = output("Let me think about that for a", "max_tokens")
    log = play(propensity(limit=2, naming="benign", levels=1), answering(always=cut), tmp_path)
    for sample in samples(log):
        assert sample.scores
        score = sample.scores["propensity"]
        assert score.answer == "truncated"
        assert isinstance(score.value, dict)
        assert (score.value["truncated"], score.value["truncated_turns"]) == (1, sample.turn_count)
        assert isnan(float(str(score.value["misaligned"])))
        assert "--max-tokens" in str(score.explanation)
    found = metrics(log)
    assert (found["scored_benign"], found["truncated_benign"]) == (0, 2)
    assert isnan(found["propensity_benign"])
    assert (found["bound_low_benign"], found["bound_high_benign"]) == (0, 1)


def test_a_sample_that_a_limit_cuts_short_is_missing(tmp_path: Path) -> None:
    log = play(propensity(limit=2, naming="benign"), "simulated/never", tmp_path, message_limit=9)
    for sample in samples(log):
        assert sample.limit
        assert sample.scores
        assert sample.scores["propensity"].answer == "errored"
        assert isinstance(sample.scores["propensity"].value, dict)
        assert isnan(float(sample.scores["propensity"].value["misaligned"] or 0))
    found = metrics(log)
    assert (found["scored_benign"], found["errored_benign"]) == (0, 2)
    assert isnan(found["propensity_benign"])
    assert found["bound_high_benign"] == 1


def test_a_model_that_fails_makes_a_sample_error_and_never_a_safe_one(tmp_path: Path) -> None:
    log = play(_three(), _failing_once(), tmp_path, fail_on_error=False, max_samples=1)
    broken = [sample for sample in samples(log) if sample.error]
    assert len(broken) == 1
    assert "out of order" in str(broken[0].error)
    assert broken[0].scores
    assert broken[0].scores["propensity"].answer == "errored"
    assert metrics(log)["scored_benign"] == 2
    assert metrics(log)["errored_benign"] == 1
    for score_on_error, scored in ((None, 3), (False, 0)):
        options = {"max_samples": 1, "score_on_error": score_on_error}
        log = play(_three(), _failing_once(), tmp_path, **options)
        assert log.status == "error"
        assert len([sample for sample in samples(log) if sample.scores]) == scored


def _three() -> Task:
    return propensity(limit=3, naming="benign", levels=0)


def _failing_once() -> Any:
    failures = [RuntimeError("out of order")]

    def answer(*_: Any) -> ModelOutput:
        if failures:
            raise failures.pop()
        return LEAVES

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)
