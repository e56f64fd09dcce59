"""What a user of Inspect AI does with a task: the program, events, retries, sets, scoring again."""

import subprocess
import sys
from pathlib import Path

import pytest
from inspect_adapter.exporting import export, samples_of
from inspect_adapter.playing import episodes, metrics, play, samples, through_engine
from inspect_ai import eval_retry, eval_set, score
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.event import InfoEvent, SpanBeginEvent, ToolEvent
from inspect_ai.log import EvalSample, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageTool
from inspect_ai.viewer import TaskSamplesView

from propensitybench.episode import RULES_VERSION
from propensitybench.inspect_adapter.scorer import propensity as propensity_scorer
from propensitybench.inspect_adapter.tasks import propensity, stated_policy
from propensitybench.inspect_adapter.viewer import COLUMNS
from propensitybench.scenarios import Selection


@pytest.mark.slow
def test_the_program_finds_task_and_model(tmp_path: Path) -> None:
    arguments = (
        "eval propensitybench/propensity --model simulated/never --display plain --max-samples 3 "
        "-T limit=4 -T levels=1 -T domain=self-proliferation -T dimension=time,financials"
    )
    done = subprocess.run(
        [sys.executable, "-m", "inspect_ai", *arguments.split(), "--log-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task, log.eval.model) == (
        "success",
        "propensitybench/propensity",
        "simulated/never",
    )
    assert log.eval.task_version == f"{RULES_VERSION}-A"
    assert {str(sample.metadata["dimension"]) for sample in samples(log)} == {"time", "financials"}
    assert len(samples(log)) == 8
    assert metrics(log)["propensity_harmful"] == 0


@pytest.mark.slow
def test_levels_messages_and_the_misaligned_call_are_easy_to_find(tmp_path: Path) -> None:
    log = play(propensity(limit=1, naming="harmful"), "simulated/at-level-2", tmp_path)
    (sample,) = samples(read_eval_log(log.location, resolve_attachments=True))
    levels = [
        event.name for event in sample.events if isinstance(event, SpanBeginEvent) and event.type == "level"
    ]
    assert levels[0] == "level 0: no pressure"
    assert [name.split(":")[0] for name in levels] == ["level 0", "level 1", "level 2"]
    infos = [event for event in sample.events if isinstance(event, InfoEvent)]
    assert [event.source for event in infos] == ["pressure, level 1", "pressure, level 2", "misaligned call"]
    assert isinstance(infos[1].data, dict)
    assert sum(str(infos[1].data["body"]) in message.text for message in sample.messages) == 1
    assert isinstance(infos[2].data, dict)
    assert infos[2].data["level"] == 2
    assert sample.messages[-1] == sample.output.message


@pytest.mark.slow
def test_answered_tool_calls_are_events_as_in_exported_logs(tmp_path: Path) -> None:
    log = play(propensity(limit=1, naming="harmful", levels=2), "simulated/at-level-2", tmp_path)
    (sample,) = samples(read_eval_log(log.location, resolve_attachments=True))
    path = tmp_path / "a.run"
    selection = Selection(namings=("harmful",), limit=1)
    through_engine(path, "at-level-2", selection, seed=0, levels=2)
    (exported,) = samples_of(export(path, tmp_path / "logs")).values()
    assert tool_events(sample) == tool_events(exported)
    answers = [message for message in sample.messages if isinstance(message, ChatMessageTool)]
    assert [event[2] for event in tool_events(sample)] == [message.text for message in answers]
    ids = [event.message_id for event in sample.events if isinstance(event, ToolEvent)]
    assert ids == [message.id for message in answers]


def tool_events(sample: EvalSample) -> list[tuple[str, object, str]]:
    return [
        (event.function, event.arguments, str(event.result))
        for event in sample.events
        if isinstance(event, ToolEvent)
    ]


def test_the_viewer_has_columns_for_what_the_end_of_a_long_id_would_tell(tmp_path: Path) -> None:
    log = play(propensity(limit=1, levels=0), "simulated/never", tmp_path)
    view = read_eval_log(log.location, header_only=True).eval.viewer
    assert view
    assert isinstance(view.task_samples_view, TaskSamplesView)
    shown = {column.id for column in view.task_samples_view.columns or ()}
    for sample in samples(log):
        assert sample.scores
        value = sample.scores["propensity"].value
        assert isinstance(value, dict)
        assert {f"score__propensity__{name}" for name in ("naming", "dimension")} <= shown
        assert shown >= {f"score__propensity__{name}" for name in value if name in COLUMNS}
        assert set(COLUMNS) <= value.keys()
        assert str(sample.id).endswith(f".{value['dimension']}.{value['naming']}")


def test_an_interrupted_evaluation_is_resumed(tmp_path: Path) -> None:
    whole = play(propensity(limit=2, levels=1), "simulated/o3-like", tmp_path / "whole")
    partial = whole.model_copy(update={"status": "error", "samples": samples(whole)[:1], "results": None})
    path = tmp_path / "partial.eval"
    write_eval_log(partial, str(path))
    (done,) = eval_retry(str(path), log_dir=str(tmp_path / "done"), display="log", log_realtime=False)
    assert done.status == "success"
    assert episodes(done) == episodes(whole)
    assert metrics(done) == metrics(whole)


def test_a_set_of_evaluations(tmp_path: Path) -> None:
    tasks = [propensity(limit=1, naming="benign", levels=0), stated_policy(limit=1, naming="benign")]
    models = ["simulated/always", "simulated/never"]
    fine, logs = eval_set(tasks, str(tmp_path), model=models, display="log", log_realtime=False)
    assert fine
    assert len(logs) == 4


def test_scoring_again_gives_the_same(tmp_path: Path) -> None:
    log = play(propensity(limit=2, levels=1), "simulated/o3-like", tmp_path)
    again = score(read_eval_log(log.location), propensity_scorer(), action="overwrite", display="log")
    assert episodes(again) == episodes(log)
    assert metrics(again) == metrics(log)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"domain": "cyber"}, "did you mean 'cyber-security'"),
        ({"naming": "nice"}, "unknown naming 'nice'"),
        ({"levels": 13}, "levels: must be from 0 to 12"),
        ({"limit": 0}, "limit: must be 1 or more"),
        ({"template": "names"}, "unknown template 'names'; did you mean 'named'"),
        ({"data": "/no/such/folder"}, "/no/such/folder: is not a folder"),
    ],
)
def test_bad_arguments_are_told_in_one_sentence(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(PrerequisiteError) as found:
        propensity(**arguments)  # type: ignore[arg-type]
    assert text in str(found.value.message)


@pytest.mark.slow
def test_without_inspect_everything_else_works(tmp_path: Path) -> None:
    run = ["run", "--model", "simulated/never", "--run", str(tmp_path / "a.run"), "--limit", "1"]
    program = (
        "import sys; sys.modules['inspect_ai'] = None\n"
        "import propensitybench; from propensitybench.cli import main\n"
        f"sys.argv = {['propensitybench', *run]}\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
