"""Exported logs: what Inspect's own readers find in them, and that they appear whole or not at all."""

import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter
from math import isnan
from pathlib import Path

import pytest
from helpers.program import argv
from helpers.runs import finish, make, scripted
from inspect_adapter.exporting import ODD, USAGE, export, mixed_run, samples_of, scores_of
from inspect_ai import score
from inspect_ai.event import InfoEvent, ModelEvent, SpanBeginEvent
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ContentReasoning

from propensitybench.chat import Message
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import EpisodeRecord, Protocol, replay
from propensitybench.episode.prompt import NO_REPLY
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.inspect_adapter.scorer import propensity
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed_run(tmp_path_factory.mktemp("run") / "a.run")


@pytest.fixture(scope="module")
def logs(run: Path) -> list[Path]:
    return export(run, run.parent / "logs")


def records(run: Path) -> dict[str, EpisodeRecord]:
    with RunFile.open(run) as file:
        return {record.metadata.task: record for record in file.records()}


def conversations(run: Path) -> dict[str, list[Message]]:
    with RunFile.open(run) as file:
        return {task.task.key: replay(file.job(task)).episode.messages for task in file.tasks()}


def test_a_log_for_each_domain_and_naming_says_what_was_run(run: Path, logs: list[Path]) -> None:
    headers = [read_eval_log(str(path), header_only=True) for path in logs]
    assert [header.eval.task_args["naming"] for header in headers] == ["harmful", "benign"]
    with RunFile.open(run) as file:
        manifest = file.manifest
    for header in headers:
        spec = header.eval
        assert (header.status, spec.task, spec.model) == (
            "success",
            "propensitybench/propensity",
            manifest.model,
        )
        assert spec.task_args["domain"] == "self-proliferation"
        assert spec.dataset.samples == len(spec.dataset.sample_ids or ()) == 6
        assert spec.packages == {"propensitybench": manifest.package}
        assert header.metadata["seed"] == manifest.seed
        assert header.metadata["protocol"]["levels"] == 12
        assert header.results
        assert (header.results.total_samples, header.results.completed_samples) == (6, 4)
        usage = header.stats.model_usage[manifest.model]
        assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens) == (180, 120, 60)


def test_the_metrics_are_those_of_the_program(run: Path, logs: list[Path]) -> None:
    program = scores_of(run).naming
    for path, (naming, expected) in zip(logs, program.items(), strict=True):
        results = read_eval_log(str(path), header_only=True).results
        assert results
        found = {name: metric.value for name, metric in results.scores[0].metrics.items()}
        for name in ("propensity", "propensity_zero", "resilience", "persistence", "abandonment"):
            assert found[f"{name}_{naming}"] == getattr(expected, name)
        assert (found[f"bound_low_{naming}"], found[f"bound_high_{naming}"]) == expected.bounds
        assert (results.scores[0].scored_samples, results.scores[0].unscored_samples) == (3, 3)


def test_conversations_are_whole(run: Path, logs: list[Path]) -> None:
    samples = samples_of(logs)
    for key, messages in conversations(run).items():
        told = samples[key].messages
        assert [message.role for message in told] == [message.role for message in messages]
        assert [message.text for message in told] == [message.content for message in messages]
        calls = [[c.function for c in getattr(m, "tool_calls", None) or ()] for m in told]
        assert calls == [[c.name for c in m.tool_calls] for m in messages]
        answers = [m.tool_call_id for m in told if isinstance(m, ChatMessageTool)]
        assert answers == [m.tool_call_id for m in messages if m.role == "tool"]
        assert len({message.id for message in told}) == len(told)


def test_each_model_call_has_the_conversation_before_it(run: Path, logs: list[Path]) -> None:
    samples = samples_of(logs)
    with RunFile.open(run) as file:
        for task in file.tasks():
            turns = replay(file.job(task)).episode.turns
            sample = samples[task.task.key]
            asked = [event for event in sample.events if isinstance(event, ModelEvent)]
            assert [event.input for event in asked] == [sample.messages[: turn.first] for turn in turns]
            assert [event.metadata["event"] for event in asked if event.metadata] == [
                turn.event.value for turn in turns
            ]
            assert all(event.tools for event in asked)


def test_levels_pressure_and_the_misaligned_call_are_events(run: Path, logs: list[Path]) -> None:
    told = records(run)
    for key, sample in samples_of(logs).items():
        stats = told[key].stats
        spans = [event.name for event in sample.events if isinstance(event, SpanBeginEvent)]
        infos = [event for event in sample.events if isinstance(event, InfoEvent)]
        levels = [name for name in spans if name.startswith("level")]
        assert [name.partition(":")[0] for name in levels] == [f"level {n}" for n in range(stats.level + 1)]
        pressure = [info for info in infos if (info.source or "").startswith("pressure")]
        assert [info.data["level"] for info in pressure if isinstance(info.data, dict)] == list(
            range(1, stats.level + 1)
        )
        gave_in = [info.data for info in infos if info.source == "misaligned call"]
        assert len(gave_in) == (stats.outcome == "misaligned") == ("misaligned call" in spans)
        if gave_in:
            assert isinstance(gave_in[0], dict)
            assert (gave_in[0]["level"], gave_in[0]["turn"]) == (stats.level, stats.turn)


def test_reasoning_and_usage_survive(logs: list[Path]) -> None:
    told = [sample for sample in samples_of(logs).values() if "first thought" in str(sample.messages)]
    assert len(told) == 2
    for sample in told:
        thoughts = [
            part.reasoning
            for message in sample.messages
            if isinstance(message, ChatMessageAssistant) and not isinstance(message.content, str)
            for part in message.content
            if isinstance(part, ContentReasoning)
        ]
        assert thoughts == [f"first thought {ODD}", "second thought"]
        first = next(event for event in sample.events if isinstance(event, ModelEvent))
        assert first.output.usage
        assert first.output.usage.input_tokens == USAGE.input - USAGE.cached
        assert first.output.usage.reasoning_tokens == USAGE.reasoning
        assert (first.output.model, first.output.time) == ("o3-2026", 0.5)
        assert sample.model_usage["simulated/o3-like"].total_tokens == 2 * (USAGE.input + USAGE.output)


def test_what_failed_is_an_error_without_a_score_and_what_was_blocked_no_safe_one(
    run: Path, logs: list[Path]
) -> None:
    samples, told = samples_of(logs), records(run)
    assert Counter(record.stats.outcome for record in told.values()) == {
        "misaligned": 2,
        "blocked": 2,
        "errored": 4,
        "resisted": 4,
    }
    for key, record in told.items():
        sample = samples[key]
        if record.stats.outcome == "errored":
            assert sample.error
            assert sample.error.message == record.error
            assert sample.scores is None
            continue
        assert sample.error is None
        assert sample.scores
        value = sample.scores["propensity"].value
        assert isinstance(value, dict)
        assert isnan(float(value["misaligned"] or 0)) == (record.stats.outcome == "blocked")


def test_arguments_that_are_no_object_stand_as_they_were_written(logs: list[Path]) -> None:
    made = [
        call
        for sample in samples_of(logs).values()
        for message in sample.messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or ()
        if call.function == f"tool{ODD}"
    ]
    texts = {call.parse_error for call in made}
    assert {"[1, 2]", "[" * 5000, "not JSON " + ODD} <= texts
    assert all(call.arguments == {} for call in made if call.parse_error)


def test_a_sample_grows_with_its_turns_and_not_with_their_square(tmp_path: Path) -> None:
    def size(levels: int) -> int:
        path = tmp_path / f"{levels}.run"
        selection = Selection(limit=1, namings=("benign",))
        create_run(RunSpec("simulated/o3-like", selection=selection, protocol=Protocol(levels=levels)), path)
        finish(path, scripted(done=False))
        (log,) = export(path, tmp_path / str(levels))
        with zipfile.ZipFile(log) as archive:
            return max(info.file_size for info in archive.infolist())

    assert size(11) < 2.2 * size(5)  # 144 and 72 turns


def test_inspects_readers_and_data_frames_take_them(run: Path, logs: list[Path]) -> None:
    # Slow to import.
    from inspect_ai.analysis import (
        SampleColumn,
        SampleSummary,
        evals_df,
        events_df,
        messages_df,
        samples_df,
    )

    summaries = [one for path in logs for one in read_eval_log_sample_summaries(str(path))]
    assert {f"{one.id}.{one.epoch}" for one in summaries} == set(records(run))
    one = read_eval_log_sample(str(logs[0]), summaries[0].id, summaries[0].epoch)
    assert read_eval_log_sample(str(logs[0]), uuid=one.uuid).id == one.id
    folder = str(logs[0].parent)
    frame = samples_df(folder)
    assert len(frame) == 12
    assert {"metadata_domain", "metadata_dimension", "metadata_naming", "score_propensity"} <= set(frame)
    parts = [SampleColumn(name, path=f"scores.propensity.value.{name}") for name in ("misaligned", "blocked")]
    wide = samples_df(folder, columns=[*SampleSummary, *parts])
    assert (wide["misaligned"].sum(), wide["blocked"].sum()) == (2, 2)
    assert len(evals_df(folder)) == 2
    # All but a placeholder at the very end: no model was sent it, and none wrote it.
    expected = {
        message.id
        for sample in samples_of(logs).values()
        if not sample.error
        for message in sample.messages
        if message is not sample.messages[-1] or message.text != NO_REPLY
    }
    assert expected <= set(messages_df(folder)["message_id"])
    assert set(events_df(folder)["event"]) >= {"model", "tool", "info", "span_begin", "score", "error"}


def test_inspect_scores_them_again(logs: list[Path]) -> None:
    again = score(read_eval_log(str(logs[0])), propensity(), action="overwrite", display="log")
    before, after = read_eval_log(str(logs[0])), again
    assert before.results
    assert after.results
    old, new = before.results.scores[0].metrics, after.results.scores[0].metrics
    assert new["propensity_harmful"].value == old["propensity_harmful"].value


def test_a_run_that_is_not_finished_has_what_has_ended(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    with sqlite3.connect(finish_copy(path, tmp_path / "b.run")) as db:
        db.execute("DELETE FROM outcome WHERE task >= 5")
    db.close()
    logs = export(tmp_path / "b.run", tmp_path / "logs")
    headers = [read_eval_log(str(log)) for log in logs]
    assert [header.status for header in headers] == ["cancelled", "cancelled"]
    assert [len(header.samples or ()) for header in headers] == [3, 2]
    assert [header.eval.dataset.samples for header in headers] == [6, 6]
    untouched = export(path, tmp_path / "nothing")
    assert [len(read_eval_log(str(log)).samples or ()) for log in untouched] == [0, 0]


def finish_copy(path: Path, copy: Path) -> Path:
    copy.write_bytes(path.read_bytes())
    finish(copy)
    return copy


def test_the_same_run_gives_the_same_bytes_and_nothing_is_overwritten(run: Path, logs: list[Path]) -> None:
    again = export(run, run.parent / "again")
    assert [path.name for path in again] == [path.name for path in logs]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in logs]
    with pytest.raises(BadInput, match="already exists; give another --out DIR"):
        export(run, run.parent / "again")
    again[1].write_text("mine")
    again[0].unlink()
    with pytest.raises(BadInput, match="already exists"):
        export(run, run.parent / "again")
    assert list((run.parent / "again").iterdir()) == [again[1]]
    assert again[1].read_text() == "mine"


def test_a_run_that_breaks_off_leaves_no_log(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    finish(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE reply SET body = '{' WHERE task = 11")
    db.close()
    with pytest.raises(NotARunFile, match="is damaged"):
        export(path, tmp_path / "logs")
    assert [path.name for path in tmp_path.iterdir()] == ["a.run"]


@pytest.mark.slow
def test_killed_midway_it_leaves_no_log_and_can_be_done_again(tmp_path: Path) -> None:
    path, out = make(tmp_path / "a.run", limit=25), tmp_path / "logs"
    finish(path)
    arguments = argv("export", path, "--format", "eval", "--out", out)
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.glob(".logs.*/new/*")):
        pass  # until it writes its first draft
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert list(tmp_path.rglob("*.eval")) == []
    assert len(export(path, out)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.run", "logs"]  # no draft is left


@pytest.mark.slow
def test_without_inspect_the_command_says_what_to_type(run: Path, tmp_path: Path) -> None:
    hide = "import sys; sys.modules['inspect_ai'] = None; sys.argv[0] = 'propensitybench'; "
    program = [sys.executable, "-c", hide + "from propensitybench.cli import main; main()"]
    exporting = ["export", str(run), "--format", "eval", "--out", str(tmp_path / "logs")]
    done = subprocess.run([*program, *exporting], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'propensitybench[inspect]'" in done.stderr
    assert "Traceback" not in done.stderr
