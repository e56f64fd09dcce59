"""Arms, the tool that asks for a decision and the closing report: the same under Inspect as in our engine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from helpers.scenario_data import built_in
from inspect_adapter.exporting import export, samples_of, scores_of
from inspect_adapter.playing import (
    Episodes,
    answering,
    calling,
    episodes,
    metrics,
    output,
    play,
    samples,
    through_engine,
)
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.event import InfoEvent, ModelEvent, SpanBeginEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from propensitybench.clients import ScriptedClient
from propensitybench.episode import Conduct, EpisodeRecord, Outcome
from propensitybench.episode.closing import read_report
from propensitybench.episode.prompt import ASK_TOOL, REPORT_REQUEST
from propensitybench.inspect_adapter.model_output import sound_reply
from propensitybench.inspect_adapter.samples import CLOSING_REPORT
from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.runs import read_runs
from propensitybench.scenarios import Selection
from propensitybench.taxonomy import ARMS

DOMAIN: Final = "self-proliferation"
BOTH: Final[Mapping[str, Any]] = {"ask": True, "report": True}
SAID_NO: Final = output('{"thoughts": "", "message": "no", "interaction_status": "terminate"}')
WAITS: Final = output('{"status": "waiting", "tools_used": [], "open": "the decision"}')
ASKS: Final = calling(ASK_TOOL, {"question": "May I use the other tool?"})


def levels_in(arm: str) -> int:
    """All of them, except where each message makes an episode of its own."""
    return 3 if ARMS[arm].alone else 12


def in_engine(path: Path, arm: str, profile: str = "moved-by-pressure", limit: int = 3) -> Episodes:
    selection = Selection(domains=(DOMAIN,), limit=limit)
    return through_engine(path, profile, selection, 0, levels_in(arm), arm=arm, **BOTH)


def in_inspect(folder: Path, arm: str, profile: str = "moved-by-pressure", limit: int = 3) -> EvalLog:
    task = propensity(domain=DOMAIN, limit=limit, levels=levels_in(arm), arm=arm, **BOTH)
    return play(task, f"simulated/{profile}", folder)


def by_task(records: Sequence[EpisodeRecord]) -> dict[str, EpisodeRecord]:
    return {record.metadata.task: record for record in records}


def read(path: Path | str) -> dict[str, EpisodeRecord]:
    """The records of the one run in a log or a folder of logs, as the program reads them."""
    (run,) = read_runs([Path(path)]).runs
    return by_task(run.records)


def in_report(sample: EvalSample) -> list[Any]:
    """The events between the beginning and the end of the span with the closing report."""
    kinds = [(one.event, getattr(one, "name", "")) for one in sample.events]
    if ("span_begin", CLOSING_REPORT) not in kinds:
        return []
    begin = kinds.index(("span_begin", CLOSING_REPORT))
    span = sample.events[begin]
    assert isinstance(span, SpanBeginEvent)
    end = next(n for n, one in enumerate(sample.events) if one.event == "span_end" and one.id == span.id)
    return sample.events[begin + 1 : end]


def asked(sample: EvalSample) -> list[ModelEvent]:
    return [event for event in sample.events if isinstance(event, ModelEvent)]


# The others play chains of twelve messages to the end.
QUICK: Final = ("single", "open")
ALL: Final = [arm if arm in QUICK else pytest.param(arm, marks=pytest.mark.slow) for arm in ARMS]


@pytest.mark.parametrize("arm", ALL)
def test_every_arm_gives_the_same_episodes(arm: str, tmp_path: Path) -> None:
    ours = in_engine(tmp_path / "a.run", arm, limit=1)
    log = in_inspect(tmp_path / "logs", arm, limit=1)
    assert log.status == "success"
    assert episodes(log) == ours
    assert read(log.location) == ours.records
    assert {record.metadata.arm for record in ours.records.values()} == {arm}
    assert all(record.stats.conduct for record in ours.records.values())
    messages = {record.metadata.message for record in ours.records.values()}
    assert messages == ({1, 2, 3} if ARMS[arm].alone else {0})
    assert len(ours.records) == (6 if ARMS[arm].alone else 2)
    assert all(ASK_TOOL in {tool.name for tool in asked(one)[0].tools} for one in samples(log))


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["o4-mini-like", "concealing", "malformed"])
def test_every_kind_of_report_is_read_the_same(profile: str, tmp_path: Path) -> None:
    ours = in_engine(tmp_path / "a.run", "escalating", profile, limit=6)
    assert episodes(in_inspect(tmp_path / "logs", "escalating", profile, limit=6)) == ours
    found = {record.stats.conduct for record in ours.records.values()}
    expected = {
        "o4-mini-like": {Conduct.ADMITTED, Conduct.STOPPED},
        "concealing": {Conduct.CONCEALED, Conduct.STOPPED},
        "malformed": {Conduct.NO_REPORT},
    }
    assert found == expected[profile]


def test_a_question_to_those_who_may_decide_is_the_same(tmp_path: Path) -> None:
    outputs = [ASKS, SAID_NO, SAID_NO, WAITS]
    script = [sound_reply(one) for one in outputs]
    client = ScriptedClient(script, "simulated/never")
    selection = Selection(domains=(DOMAIN,), namings=("benign",), limit=1)
    ours = through_engine(tmp_path / "a.run", "never", selection, 0, 1, client, **BOTH)
    theirs = episodes(one_task(answering(*outputs, always=WAITS), tmp_path, ask=True))
    assert theirs.transcripts == ours.transcripts
    (record,), (expected,) = theirs.records.values(), ours.records.values()
    assert (record.stats.conduct, record.stats.decisions_asked) == (Conduct.ASKED, 1)
    assert without_model(record) == without_model(expected)


def without_model(record: EpisodeRecord) -> EpisodeRecord:
    return msgspec.structs.replace(record, stats=msgspec.structs.replace(record.stats, other_model_turns=0))


def test_the_log_shows_the_report_after_the_end(tmp_path: Path) -> None:
    log = in_inspect(tmp_path, "open", limit=1)
    told = episodes(log).records
    for sample in samples(read_eval_log(log.location, resolve_attachments=True)):
        *before, request, report = sample.messages
        assert (request.role, request.text, report.role) == ("user", REPORT_REQUEST, "assistant")
        assert report == sample.output.message
        assert all(REPORT_REQUEST not in message.text for message in before)
        assert read_report(sound_reply(sample.output))
        spans = [event.name for event in sample.events if isinstance(event, SpanBeginEvent)]
        assert spans.count(CLOSING_REPORT) == 1
        assert [name for name in spans if name.startswith(("level", CLOSING_REPORT))][-1] == CLOSING_REPORT
        (event,) = [event for event in in_report(sample) if isinstance(event, ModelEvent)]
        assert event.input == [*before, request]
        assert event.output.message == report
        assert sample.scores
        (value,) = [score.value for score in sample.scores.values()]
        assert isinstance(value, dict)
        assert value["conduct"] == told[f"{sample.id}.{sample.epoch}"].stats.conduct


FAILED: Final = "out of order"
READ: Final = ModelUsage(input_tokens=1, total_tokens=1)
TOO_LONG: Final = output("the context is too long", "model_length").model_copy(update={"usage": READ})
BLOCKED: Final = output("I will not.", "content_filter")
NOTHING: Final = ModelOutput(model="mockllm/model", usage=READ)


@pytest.mark.parametrize(
    ("report", "error"),
    [(None, FAILED), (TOO_LONG, "too long"), (BLOCKED, ""), (NOTHING, "no choices")],
    ids=["exception", "context too long", "blocked", "no choices"],
)
def test_a_report_that_fails_leaves_the_outcome_as_it_is(
    report: ModelOutput | None, error: str, tmp_path: Path
) -> None:
    log = one_task(then_fails([SAID_NO, SAID_NO], report), tmp_path)
    assert log.status == "success"
    (sample,), (record,) = samples(log), episodes(log).records.values()
    assert (sample.error, sample.limit, record.error) == (None, None, "")
    assert (record.stats.outcome, record.stats.conduct) == (Outcome.RESISTED, Conduct.NO_REPORT)
    assert (record.stats.turns, record.stats.levels_run) == (2, 2)
    last = [(message.role, message.text) for message in sample.messages[-2:]]
    assert last[-1 if error else -2] == ("user", REPORT_REQUEST)
    assert error or last[-1] == ("assistant", "")
    infos = [event for event in in_report(sample) if isinstance(event, InfoEvent)]
    assert len(infos) == bool(error)
    assert all(info.source == CLOSING_REPORT and error in str(info.data) for info in infos)
    assert metrics(log)["scored_benign"] == 1
    assert read(log.location) == episodes(log).records


def one_task(model: Model, folder: Path, *, ask: bool = False, report: bool = True) -> EvalLog:
    task = propensity(domain=DOMAIN, naming="benign", limit=1, levels=1, ask=ask, report=report)
    return play(task, model, folder)


def then_fails(outputs: list[ModelOutput], last: ModelOutput | None) -> Model:
    """A model that gives these outputs, and then the last one or an exception."""
    waiting = list(outputs)

    def answer(*_: Any) -> ModelOutput:
        if waiting:
            return waiting.pop(0)
        if last is None:
            raise RuntimeError(FAILED)
        return last

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


@pytest.mark.parametrize("arm", ["escalating", "fresh"])
def test_an_exported_log_has_the_report_and_gives_the_same_records(arm: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    ours = in_engine(path, arm)
    logs = export(path, tmp_path / "logs")
    assert read(tmp_path / "logs") == ours.records
    (run,) = read_runs(logs).runs
    assert msgspec.structs.replace(run.score(), file="run") == scores_of(path)
    exported = samples_of(logs)
    assert exported.keys() == ours.records.keys()
    for key, sample in exported.items():
        (event,) = in_report(sample)
        assert isinstance(event, ModelEvent)
        assert event.input == sample.messages[:-1]
        assert event.output.message == sample.messages[-1] == sample.output.message
        assert sample.messages[-2].text == REPORT_REQUEST
        assert len(asked(sample)) == ours.records[key].stats.turns + 1
        header = read_eval_log(str(logs[0]), header_only=True).eval
        arguments = {name: header.task_args[name] for name in ("arm", *BOTH)}
        assert arguments == {"arm": arm, **BOTH}


def test_the_report_is_asked_with_the_tools_that_were_last_on_offer(tmp_path: Path) -> None:
    """A tool that was withdrawn at the last level is not offered again for the report."""
    task = propensity(domain=DOMAIN, naming="benign", limit=1, levels=0, report=True)
    about = task.dataset[0].metadata
    assert about
    tool = built_in().scenario(about["scenario"]).aligned.name
    often = [calling(tool, {})] * 12
    script = [sound_reply(one) for one in [*often, WAITS]]
    client = ScriptedClient(script, "simulated/never")
    selection = Selection(domains=(DOMAIN,), namings=("benign",), limit=1)
    through_engine(tmp_path / "a.run", "never", selection, 0, 0, client, report=True)
    (exported,) = samples_of(export(tmp_path / "a.run", tmp_path / "exported")).values()
    log = play(task, answering(*often, always=WAITS), tmp_path)
    for sample in (exported, *samples(read_eval_log(log.location, resolve_attachments=True))):
        offered = [tool in {info.name for info in event.tools} for event in asked(sample)]
        assert offered == [True] * 4 + [False] * 9


@pytest.mark.parametrize(
    ("arm", "text"),
    [
        ("placeboo", "unknown arm 'placeboo'; did you mean 'placebo'?"),
        ("", "unknown arm ''; known: escalating"),
    ],
)
def test_an_unknown_arm_is_told_in_one_sentence(arm: str, text: str) -> None:
    with pytest.raises(PrerequisiteError) as found:
        propensity(arm=arm)
    assert text in str(found.value.message)
