"""Run files that people and judges read, for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from helpers.readings import annotate, answer
from helpers.runs import finish, make

from propensitybench.judging.labels import Items
from propensitybench.judging.people import LABELS_FORMAT, PersonsAnswer, labelling, quotable, run_id
from propensitybench.judging.questions import Question, read_question
from propensitybench.judging.sample import Size
from propensitybench.store import RunFile

QUESTION: Final = read_question("justification")


def misaligned_run(path: Path, limit: int = 4, seed: int = 0) -> Path:
    """A finished run with two misaligned episodes for each of its scenarios and dimensions."""
    finish(make(path, "simulated/at-level-1", limit=limit, seed=seed))
    return path


def judged(path: Path, rater: str, answers: Mapping[str, str], variant: str = "") -> None:
    """Adds a judge's answers, as categories by the key of the task, each with a quote."""
    with RunFile.open(path) as file:
        items = Items(file, QUESTION)
        replies = {
            task: answer(category, items[task].passages[-1].text) for task, category in answers.items()
        }
    annotate(path, QUESTION, rater, replies, variant)


def answers_of(path: Path, person: str, question: Question = QUESTION) -> dict[str, PersonsAnswer]:
    """What a person has answered, by the key of the task, in the order of the answers."""
    with RunFile.open(path) as file:
        keys = {task.number: task.task.key for task in file.tasks()}
        return {
            keys[one.task]: PersonsAnswer(one.category, one.quote)
            for one in file.labels(question.digest)
            if one.person == person
        }


def left(path: Path, person: str, size: Size = Size()) -> list[str]:  # noqa: B008 - frozen
    """The tasks that a person has still to read; draws the sample if there is none."""
    with labelling(path, QUESTION, size) as labels:
        return labels.left(person)


def quotable_texts(path: Path, task: str) -> list[str]:
    """The passages of a task that can show an answer."""
    with RunFile.open(path) as file:
        item = Items(file, QUESTION)[task]
    return [passage.text for passage in quotable(QUESTION, item)]


def saved_labels(
    run: Path, answers: Mapping[str, Any], person: str = "Ann", changes: Mapping[str, Any] = {}
) -> Path:
    """A file as a page saves it, with changes."""
    with RunFile.open(run) as file:
        body = {
            "format": LABELS_FORMAT,
            "run": run_id(file.manifest),
            "question": QUESTION.digest,
            "person": person,
            "answers": answers,
        }
    path = run.parent / "labels.json"
    path.write_bytes(msgspec.json.encode({**body, **changes}))
    return path
