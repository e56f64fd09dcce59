"""Answers of readers, planted in run files for tests."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from propensitybench.chat import Reply
from propensitybench.judging.labels import PERSON
from propensitybench.judging.people import PersonsAnswer
from propensitybench.judging.questions import Question
from propensitybench.store import Annotation, AnnotationKey, PersonLabel, RunFile


def answer(category: str, quote: str = "") -> Reply:
    """A reader's reply with that answer."""
    return Reply(msgspec.json.encode(PersonsAnswer(category, quote)).decode())


def annotate(
    path: Path, question: Question, rater: str, replies: Mapping[str, Reply], variant: str = ""
) -> None:
    """Adds what a judge or a person said of some tasks, by their keys."""
    with RunFile.open(path, write=True) as run:
        numbers = {task.task.key: task.number for task in run.tasks()}
        run.annotate(questions={question.digest: question.body})
        if rater.startswith(PERSON):
            given = {
                key: msgspec.json.decode(one.content, type=PersonsAnswer) for key, one in replies.items()
            }
            run.add_labels(
                [
                    PersonLabel(
                        numbers[key], question.digest, rater.removeprefix(PERSON), one.category, one.quote
                    )
                    for key, one in given.items()
                ]
            )
            return
        rows = [
            Annotation(AnnotationKey(numbers[key], question.digest, variant, rater), reply)
            for key, reply in replies.items()
        ]
        run.annotate(rows, raters={rater: "{}"})
