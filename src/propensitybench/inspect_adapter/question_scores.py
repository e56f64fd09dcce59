"""What readers said of episodes, as scores of samples beside the outcome."""

from collections import Counter
from collections.abc import Collection, Iterable
from math import nan
from typing import Any, NamedTuple

from inspect_ai.log import EvalMetric, EvalScore
from inspect_ai.scorer import Score

from propensitybench.inspect_adapter.samples import SCORER
from propensitybench.judging.labels import Answers, Labelled, read_labels, who_said_what
from propensitybench.judging.questions import Question
from propensitybench.store import RunFile


class QuestionScores(NamedTuple):
    """The scores that a question gives.

    Attributes:
        name: of the score: the question's, unless another score has it.
        question: the question.
        asked: keys of the tasks that it is about, whether read or not.
        scores: by the task's key, of those that were read.
    """

    name: str
    question: Question
    asked: frozenset[str]
    scores: dict[str, Score]

    def summary(self, tasks: Collection[str]) -> EvalScore:
        """What a log's header says of its tasks: the share of each category among those with an answer."""
        values = [self.scores[task].value for task in tasks if task in self.scores]
        answers = Counter(value for value in values if isinstance(value, str))
        answered = answers.total()
        shares = {name: answers[name] / answered for name in self.question.names} if answered else {}
        return EvalScore(
            name=self.name,
            scorer=self.name,
            scored_samples=answered,
            unscored_samples=len(self.asked.intersection(tasks)) - answered,
            metrics={name: EvalMetric(name=name, value=share) for name, share in shares.items()},
            metadata={"title": self.question.title, "question": self.question.digest},
        )


def question_scores(run: RunFile) -> list[QuestionScores]:
    """The scores of every question that has answers in a run file; raises as `read_labels` does."""
    if not run.questions():
        return []
    found: dict[str, QuestionScores] = {}
    for labels in read_labels(run.path):
        name = labels.question.name
        if name == SCORER or name in found:
            name = f"{name}-{labels.question.digest}"
        if labels.given:
            found[name] = _scores(name, labels)
    return list(found.values())


def _scores(name: str, labels: Answers) -> QuestionScores:
    asked = frozenset(record.metadata.task for record in labels.episodes)
    variants: dict[str, list[Labelled]] = {}
    for one in labels.given:
        if one.variant:
            variants.setdefault(one.record.metadata.task, []).append(one)
    scores = {task: _score(labels, task, variants.get(task, ())) for task in labels.by_episode}
    return QuestionScores(name, labels.question, asked, scores)


def _score(labels: Answers, task: str, variants: Iterable[Labelled]) -> Score:
    """What a person says of an episode, else most models; NaN for a tie, or if nobody has an answer."""
    given = labels.by_episode[task]
    category = labels.of_first_person(task)
    people = category is not None
    category = category or labels.of_most_judges(task)
    agreeing = [one for one in given if one.by_person == people and one.label.category == category]
    return Score(
        value=nan if category is None else category,
        answer=next((one.label.quote for one in agreeing if category and one.label.quote), None),
        explanation=who_said_what(given),
        metadata={
            "decided_by": "a person" if people else "models",
            "labels": [_label(one) for one in (*given, *variants)],
        },
    )


def _label(one: Labelled) -> dict[str, Any]:
    label, passage = one.label, one.label.passage
    fields = {
        "rater": one.rater,
        "variant": one.variant or None,
        "category": label.category,
        "quote": label.quote or None,
        "message": passage.message if passage else None,
        "missing": label.why.value if label.why else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
