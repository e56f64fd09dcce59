"""What readers said travels in exported logs: as scores beside the outcome, which stays what it was."""

from math import isnan
from pathlib import Path

import msgspec
import pytest
from helpers.readings import annotate, answer
from inspect_adapter.exporting import ODD, export, samples_of, scores_of
from inspect_adapter.scouted import REASONS, scouted_run
from inspect_ai import score
from inspect_ai.event import ScoreEvent
from inspect_ai.log import EvalSample, read_eval_log, read_eval_log_sample_summaries

from propensitybench.chat import Reply, StopReason
from propensitybench.inspect_adapter.scorer import propensity
from propensitybench.judging.questions import Category, Question, read_question
from propensitybench.runs import StoredRun, read_runs

QUESTION = read_question("justification")
JUDGES = ("judge/a", "judge/b", "judge/c")
PEOPLE = ("person/x", "person/y")
# By the place of the task: what the three judges and the people say.
GIVEN: list[dict[str, str]] = [
    {"judge/a": "goal over rule", "judge/b": "goal over rule", "judge/c": "necessity"},
    {"judge/a": "authority", "judge/b": "necessity"},
    {"judge/a": "harm denied", "judge/b": "harm denied", "person/x": "necessity", "person/y": "authority"},
    {"judge/a": "none stated", "judge/b": "a mood"},
    {"judge/a": "necessity"},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = scouted_run(tmp_path_factory.mktemp("run") / "a.run")
    keys = [record.metadata.task for record in StoredRun(path).records]
    for rater in (*JUDGES, *PEOPLE):
        given = {keys[i]: answer(one[rater], REASONS[i]) for i, one in enumerate(GIVEN) if rater in one}
        annotate(path, QUESTION, rater, given)
    annotate(path, QUESTION, "judge/c", {keys[4]: Reply(stop=StopReason.REFUSAL)})
    annotate(path, QUESTION, "judge/a", {keys[0]: answer("authority", REASONS[0])}, variant="none-follow")
    return path


@pytest.fixture(scope="module")
def logs(run: Path) -> list[Path]:
    return export(run, run.parent / "logs")


@pytest.fixture(scope="module")
def samples(run: Path, logs: list[Path]) -> list[EvalSample]:
    """In the order of the run."""
    found = samples_of(logs)
    return [found[record.metadata.task] for record in StoredRun(run).records]


def test_the_majority_of_models_or_the_first_person_is_the_value(samples: list[EvalSample]) -> None:
    values = [(sample.scores or {})["justification"].value for sample in samples[:5]]
    # A tie is no answer; the first person counts before any number of others.
    assert values[0] == "goal over rule"
    assert isnan(float(str(values[1])))
    assert values[2:] == ["necessity", "none stated", "necessity"]
    assert [set(sample.scores or {}) for sample in samples[5:]] == [{"propensity"}] * 2


def test_the_quote_is_the_answer_and_the_metadata_have_every_label(samples: list[EvalSample]) -> None:
    first, tie, person, none, missing = ((sample.scores or {})["justification"] for sample in samples[:5])
    assert first.answer == REASONS[0]
    assert first.explanation == "goal over rule: judge/a, judge/b; necessity: judge/c"
    assert first.metadata == {
        "decided_by": "models",
        "labels": [
            {"rater": "judge/a", "category": "goal over rule", "quote": REASONS[0], "message": 2},
            {"rater": "judge/b", "category": "goal over rule", "quote": REASONS[0], "message": 2},
            {"rater": "judge/c", "category": "necessity", "quote": REASONS[0], "message": 2},
            {
                "rater": "judge/a",
                "variant": "none-follow",
                "category": "authority",
                "quote": REASONS[0],
                "message": 2,
            },
        ],
    }
    assert (tie.answer, none.answer) == (None, None)
    assert person.metadata
    assert person.metadata["decided_by"] == "a person"
    assert none.explanation == "none stated: judge/a; no answer (unknown category): judge/b"
    assert missing.explanation == "necessity: judge/a; no answer (refused): judge/c"
    assert missing.metadata
    assert missing.metadata["labels"][1] == {"rater": "judge/c", "missing": "refused"}


def test_the_outcome_is_what_it_was(run: Path, logs: list[Path], tmp_path: Path) -> None:
    plain = scouted_run(tmp_path / "plain.run")
    before = samples_of(export(plain, tmp_path / "plain"))
    for key, sample in samples_of(logs).items():
        assert (sample.scores or {})["propensity"] == (before[key].scores or {})["propensity"]
    (found,) = read_runs(logs).runs
    assert msgspec.structs.replace(found.score(), file="run") == scores_of(run)
    assert {record.metadata.task: record for record in found.records} == {
        record.metadata.task: record for record in StoredRun(run).records
    }


def test_the_header_lists_the_score_with_the_share_of_each_category(logs: list[Path]) -> None:
    (path,) = logs
    header = read_eval_log(str(path), header_only=True)
    assert header.results
    outcome, judged = header.results.scores
    assert (outcome.name, judged.name, judged.scorer) == ("propensity", "justification", "justification")
    # Six episodes ended misaligned: one has a tie, and one was not read.
    assert (judged.scored_samples, judged.unscored_samples) == (4, 2)
    shares = {name: metric.value for name, metric in judged.metrics.items() if metric.value}
    assert shares == {"goal over rule": 0.25, "necessity": 0.5, "none stated": 0.25}
    assert list(judged.metrics) == list(QUESTION.names)
    assert judged.metadata == {"title": "justification", "question": QUESTION.digest}
    view = header.eval.viewer.task_samples_view if header.eval.viewer else None
    assert "justification" in str(view)


def test_inspects_readers_take_them(logs: list[Path]) -> None:
    from inspect_ai.analysis import samples_df  # slow to import

    (path,) = logs
    summaries = read_eval_log_sample_summaries(str(path))
    assert sum("justification" in (summary.scores or {}) for summary in summaries) == 5
    frame = samples_df(str(path.parent))
    assert frame["score_justification"].value_counts()["necessity"] == 2
    log = read_eval_log(str(path))
    events = [
        event for sample in log.samples or () for event in sample.events if isinstance(event, ScoreEvent)
    ]
    assert [event.scorer for event in events].count("justification") == 5
    again = score(log, propensity(), action="append", display="log")
    assert again.results
    assert {one.name for one in again.results.scores} >= {"propensity", "justification"}


def test_a_question_cannot_take_the_place_of_the_outcome_or_of_another(tmp_path: Path) -> None:
    path = scouted_run(tmp_path / "a.run")
    key = StoredRun(path).records[0].metadata.task
    name = f"{ODD}."
    categories = (Category(name, "odd"), Category("none", "nothing"))
    for title, text in (("propensity", "x"), (name, "x"), (name, "y")):
        question = Question(
            "propensitybench-question/1", title, ODD, "scored", "words", text, categories, "none"
        )
        annotate(path, question, f"judge/{ODD}", {key: answer(name, REASONS[0])})
    logs = export(path, tmp_path / "logs")
    sample = samples_of(logs)[key]
    names = sorted(sample.scores or {})
    assert len(names) == 4
    assert {"propensity", name} < set(names)
    assert isinstance((sample.scores or {})["propensity"].value, dict)
    assert [one.value for key, one in (sample.scores or {}).items() if key != "propensity"] == [name] * 3
    (found,) = read_runs(logs).runs
    assert msgspec.structs.replace(found.score(), file="run") == scores_of(path)
