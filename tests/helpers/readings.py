"""Answers of readers, planted in run files for tests."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from propensitybench.chat import Reply
from propensitybench.judging.questions import Question
from propensitybench.store import Annotation, RunFile
from propensitybench.store.rows import AnnotationKey


def answer(category: str, quote: str = "") -> Reply:
    """A reader's reply with that answer."""
    return Reply(msgspec.json.encode({"category": category, "quote": quote}).decode())


def annotate(
    path: Path, question: Question, rater: str, replies: Mapping[str, Reply], variant: str = ""
) -> None:
    """Adds what a reader said of some tasks, by their keys."""
    with RunFile.open(path, write=True) as run:
        numbers = {task.task.key: task.number for task in run.tasks()}
        run.annotate(
            [
                Annotation(AnnotationKey(numbers[key], question.digest, variant, rater), reply)
                for key, reply in replies.items()
            ],
            questions={question.digest: question.body},
            raters={rater: "{}"},
        )
