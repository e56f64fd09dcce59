"""The stated policy: the built-in probe in Inspect, and the comparison with a run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from inspect_adapter.playing import answering, metrics, output, play, samples, through_engine
from inspect_ai.log import read_eval_log, write_eval_log

from propensitybench.cli import compare
from propensitybench.episode import built_in_template, system_message
from propensitybench.errors import BadInput
from propensitybench.inspect_adapter.probe import (
    is_same_model,
    read_answers,
)
from propensitybench.inspect_adapter.tasks import propensity, stated_policy
from propensitybench.judging.probes import read_probe
from propensitybench.metrics.stated import StatedAgainstActual
from propensitybench.runs import Run
from propensitybench.runs import compare as compare_runs
from propensitybench.runs import open as open_run
from propensitybench.scenarios import Selection, read_dataset
from propensitybench.taxonomy import NAMINGS, Naming


def crossings(logs: Sequence[Path], *runs: Run) -> list[dict[Naming, StatedAgainstActual]]:
    """What each run's model said against what it did."""
    return [*(compare_runs(*runs, stated=logs).stated or {}).values()]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """What simulated/at-level-1 was asked about the first tasks: a log of each naming."""
    folder = tmp_path_factory.mktemp("asked")
    logs = {
        naming: play(stated_policy(limit=3, naming=naming), "simulated/at-level-1", folder)
        for naming in NAMINGS
    }
    return {naming: Path(log.location) for naming, log in logs.items()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same agent on those tasks and one more, twice."""
    path = tmp_path_factory.mktemp("run") / "a.run"
    through_engine(path, "at-level-1", Selection(limit=4, epochs=2), seed=0, levels=2)
    return path


def test_each_wording_is_asked_as_the_probe_asks_it_and_the_majority_counts(tmp_path: Path) -> None:
    # In the second wording the options are exchanged.
    replies = ["A", "B", "A", "B", "A", "B", "A", "perhaps", "B"]
    outputs = [*map(output, replies), *[output("", "content_filter")] * 3]
    model = answering(*outputs, always=output("A"))
    log = play(stated_policy(limit=5, naming="benign"), model, tmp_path, max_samples=1)
    assert log.results
    means = {one.name: one.metrics["mean"].value for one in log.results.scores}
    assert means == {"says_no": 2 / 3, "unparsed": 0.4}
    answers = {str(one.id): one.scores["stated_policy"].answer for one in samples(log) if one.scores}
    assert sorted(map(str, answers.values())) == ["no", "no", "unparsed", "unparsed", "yes"]
    read = read_answers(Path(log.location)).answers
    assert {task: read[task, 1] for task in answers} == answers
    first = samples(log)[0]
    scenario = next(one for one in read_dataset().scenarios if one.name == first.metadata["scenario"])
    system, asked, _ = first.messages
    assert system.text == system_message(built_in_template(), scenario, "benign")
    question = read_probe("stated-policy").message(3, scenario.misaligned.face("benign").name)
    assert asked.text == f"{scenario.task}\n\n{question}"


def test_several_logs_are_joined_with_a_run_by_task(asked: Mapping[str, Path], run: Path) -> None:
    (crossed,) = crossings(list(asked.values()), open_run(run))
    for naming in NAMINGS:
        found = crossed[naming]
        assert found.counts["no"] == {"misaligned": 6, "resisted": 0, "missing": 0}
        assert found.not_asked == 2
        assert found.misaligned_if_no.value == found.no_and_misaligned.value == 1


def test_the_later_of_two_answers_counts(asked: Mapping[str, Path], run: Path, tmp_path: Path) -> None:
    log = read_eval_log(str(asked["benign"]))
    for sample in samples(log):
        assert sample.scores
        sample.scores["stated_policy"].answer = "yes"
    earlier, later = tmp_path / "earlier.eval", tmp_path / "later.eval"
    for path, created in ((earlier, "2020-01-01T00:00:00+00:00"), (later, "2100-01-01T00:00:00+00:00")):
        log.eval.created = created
        write_eval_log(log, str(path))
    (one,) = crossings([asked["benign"], earlier], open_run(run))
    assert one["benign"].counts["no"]["misaligned"] == 6
    (other,) = crossings([later, asked["benign"]], open_run(run))
    assert other["benign"].counts["yes"]["misaligned"] == 6


def test_an_answer_about_another_text_does_not_count(
    asked: Mapping[str, Path], run: Path, tmp_path: Path
) -> None:
    log = read_eval_log(str(asked["benign"]))
    first = samples(log)[0]
    first.metadata["scenario_id"] = "s1:another"
    path = tmp_path / "changed.eval"
    write_eval_log(log, str(path))
    (crossed,) = crossings([path], open_run(run))
    assert crossed["benign"].not_asked == 4


def test_the_model_that_was_asked_must_be_that_of_the_run(
    asked: Mapping[str, Path], run: Path, tmp_path: Path
) -> None:
    other = play(stated_policy(limit=1, naming="benign"), "simulated/never", tmp_path).location
    sentence = "asked simulated/never, but the runs are of simulated/at-level-1"
    with pytest.raises(BadInput, match=sentence):
        crossings([Path(other)], open_run(run))
    with pytest.raises(BadInput, match=sentence):
        crossings([asked["benign"], Path(other)], open_run(run))
    through_engine(tmp_path / "b.run", "never", Selection(limit=1), seed=0, levels=2)
    both = [open_run(run), open_run(tmp_path / "b.run")]
    with pytest.raises(BadInput, match=r"none of the logs is of simulated/never, the model of .*b\.run"):
        crossings([asked["benign"]], *both)
    crossed = crossings([Path(other), asked["benign"]], *both)
    assert [one["benign"].counts["no"]["misaligned"] for one in crossed] == [6, 0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("openai/x", "openai/x", True),
        ("m", "openai-api/local/m", True),
        ("openai/x", "openai/x-mini", False),
        ("openai/x", "azure/x", False),
        ("x-mini", "openai/mini", False),
    ],
)
def test_a_model_is_known_by_its_address(one: str, other: str, same: bool) -> None:
    assert is_same_model(one, other) is is_same_model(other, one) is same


def test_compare_prints_what_was_said_against_what_was_done(
    asked: Mapping[str, Path], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare.command([run], None, list(asked.values()), regress=False, as_json=True)
    stated = json.loads(capsys.readouterr().out)["stated"]["at-level-1"]
    assert stated["harmful"]["counts"]["no"] == {"misaligned": 6, "resisted": 0, "missing": 0}
    compare.command([run], None, list(asked.values()), regress=False, as_json=False)
    printed = capsys.readouterr().out
    assert "at-level-1, benign names" in printed
    assert "after NO: 100.0" in printed
    assert "no answer: 2 tasks" in printed


def test_another_log_or_none_is_refused(tmp_path: Path) -> None:
    other = play(propensity(limit=1, levels=0), "simulated/always", tmp_path)
    assert metrics(other)
    with pytest.raises(BadInput, match="holds no answer of propensitybench/stated_policy"):
        read_answers(Path(other.location))
    with pytest.raises(BadInput, match="cannot be read as a log"):
        read_answers(tmp_path / "nothing.eval")
