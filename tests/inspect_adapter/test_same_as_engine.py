"""The same scenarios, profile and seed: the same transcripts, outcomes and scores, whoever drives."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from inspect_adapter.playing import answering, calling, episodes, metrics, output, play, through_engine

from propensitybench.clients import ScriptedClient
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.episode.prompt import NO_REPLY, TURN_LIMIT_REACHED
from propensitybench.inspect_adapter.model_output import sound_reply
from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.metrics import RunRecords, score_run
from propensitybench.metrics.measures import shown_in
from propensitybench.scenarios import Selection

PROFILES = ("always", "quitter", "malformed", "incompetent", "at-level-2", "o3-like")


@pytest.mark.parametrize("profile", PROFILES)
def test_transcripts_and_outcomes_are_the_same(profile: str, tmp_path: Path) -> None:
    ours = through_engine(tmp_path / "a.run", profile, Selection(limit=1), seed=7, levels=3)
    log = play(propensity(limit=1, seed=7, levels=3), f"simulated/{profile}", tmp_path)
    assert log.status == "success"
    theirs = episodes(log)
    assert theirs.records == ours.records
    assert theirs.transcripts == ours.transcripts


def test_replies_that_cannot_be_used_are_the_same(tmp_path: Path) -> None:
    """Empty, blocked and cut off replies leave the same placeholder in the conversation."""
    message = '{"thoughts": "", "message": "hm", "interaction_status": "%s"}'
    cut = calling("nothing", {}, "max_tokens")
    assert cut.message.tool_calls
    cut.message.tool_calls[0].parse_error = "Error parsing the following tool call arguments"
    outputs = [
        output(""),
        output("I will not.", "content_filter"),
        calling("nothing", {"a": 1}),
        output("prose"),
        *[calling("nothing", {}, "max_tokens")] * 10,
        output("half of a sen", "max_tokens"),
        cut,
        output(message % "continue", "max_tokens"),
        output(message % "terminate"),
    ]
    script = [sound_reply(one) for one in outputs]
    selection = Selection(namings=("benign",), limit=1)
    client = ScriptedClient(script, "simulated/never")
    ours = through_engine(tmp_path / "a.run", "never", selection, 0, 6, client)
    task = propensity(naming="benign", limit=1, levels=6)
    log = play(task, answering(*outputs, always=outputs[-1]), tmp_path)
    theirs = episodes(log)
    assert theirs.transcripts == ours.transcripts
    (record,), (expected,) = theirs.records.values(), ours.records.values()
    assert record.stats.outcome is Outcome.BLOCKED  # the first reply that was not heard
    assert (record.stats.empty_replies, record.stats.blocked_turns, record.stats.truncated_turns) == (1, 1, 2)
    texts = [message.text for message in theirs.transcripts[record.metadata.task]]
    assert (texts.count(NO_REPLY), texts.count(TURN_LIMIT_REACHED)) == (4, 1)
    assert _without_model(record) == _without_model(expected)


def test_the_whole_ladder_gives_the_scores_of_the_program(tmp_path: Path) -> None:
    selection = Selection(dimensions=("time", "financials"), limit=3)
    ours = through_engine(tmp_path / "a.run", "constant-0.1", selection, seed=0, levels=12)
    log = play(propensity(dimension=["time", "financials"], limit=3), "simulated/constant-0.1", tmp_path)
    assert episodes(log) == ours
    assert metrics(log) == _expected(list(ours.records.values()), levels=12)


def test_epochs_are_ours_and_none_of_them_is_averaged_away(tmp_path: Path) -> None:
    selection = Selection(namings=("benign",), limit=2, epochs=3)
    ours = through_engine(tmp_path / "a.run", "constant-0.3", selection, seed=1, levels=2)
    task = propensity(naming="benign", limit=2, seed=1, levels=2)
    log = play(task, "simulated/constant-0.3", tmp_path, epochs=3)
    assert episodes(log) == ours
    assert len({record.metadata.seed for record in ours.records.values()}) == 6
    assert metrics(log) == _expected(list(ours.records.values()), levels=2)


def test_a_limit_of_inspect_takes_the_beginning_of_the_same_balanced_order(tmp_path: Path) -> None:
    log = play(propensity(limit=40, naming="harmful", levels=0), "simulated/always", tmp_path, limit=6)
    few = through_engine(tmp_path / "a.run", "always", Selection(namings=("harmful",), limit=6), 0, 0)
    assert episodes(log) == few


def _without_model(record: EpisodeRecord) -> EpisodeRecord:
    return msgspec.structs.replace(record, stats=msgspec.structs.replace(record.stats, other_model_turns=0))


def _expected(records: list[Any], levels: int) -> dict[str, float]:
    """What the metrics must say, from the scores that the program prints."""
    run = score_run(RunRecords("", "", len(records), records, levels))
    expected: dict[str, float | None] = {"naming_sensitivity": run.naming_sensitivity}
    for naming, found in run.naming.items():
        low, high = found.ci95 or (None, None)
        bound_low, bound_high = found.bounds or (None, None)
        numbers = {
            **{one.name: found.estimates[one.name].domain.value for one in shown_in("inspect")},
            "stderr": found.estimates["propensity"].domain.errors.scenario,
            "ci95_low": low,
            "ci95_high": high,
            "bound_low": bound_low,
            "bound_high": bound_high,
            "scored": found.n,
            "blocked": 0,
            "truncated": 0,
            "errored": 0,
            **found.by_domain,
            **found.by_dimension,
        }
        expected |= {f"{name}_{naming}": number for name, number in numbers.items()}
    return {name: float(number) for name, number in expected.items() if number is not None}
