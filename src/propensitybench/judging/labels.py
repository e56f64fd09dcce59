"""What readers said of a run's episodes: labels derived from the replies and answers in its run file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.episode import SCORED, EpisodeRecord, Outcome
from propensitybench.errors import UnknownName
from propensitybench.judging.items import Item, item_of
from propensitybench.judging.prompts import Label, checked_label, read_label
from propensitybench.judging.questions import Question, stored_questions
from propensitybench.metrics.majority import majority
from propensitybench.runs import Run, StoredRun
from propensitybench.runs.stored import transcript_in
from propensitybench.store import RunFile

PERSON: Final = "person/"
"""How people are named among the raters; every other rater is a model."""
KEPT: Final = 256
"""Items that stay in memory."""


class Labelled(NamedTuple):
    """A reader's answer about an episode.

    Attributes:
        record: of the episode.
        rater: the reader.
        variant: what the reader was told of the consequences; empty if nothing.
        label: the answer.
    """

    record: EpisodeRecord
    rater: str
    variant: str
    label: Label

    @property
    def by_person(self) -> bool:
        """Whether a person read it."""
        return self.rater.startswith(PERSON)


@dataclass(frozen=True)
class Answers:
    """All answers to a question about a run.

    Attributes:
        question: the question.
        episodes: those that the question is about, in the order of the run, whether read or not.
        given: the answers: those of models and then those of people, each in the order in which they came.
    """

    question: Question
    episodes: tuple[EpisodeRecord, ...]
    given: tuple[Labelled, ...]

    def by(self, rater: str, variant: str = "") -> dict[str, Label]:
        """A reader's answers by the key of the task."""
        return {
            one.record.metadata.task: one.label
            for one in self.given
            if one.rater == rater and one.variant == variant
        }

    @cached_property
    def people(self) -> tuple[str, ...]:
        """The people who read, in the order of their first answer."""
        return tuple(dict.fromkeys(one.rater for one in self.given if one.by_person))

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """The models that read, in the order of their first answer."""
        return tuple(dict.fromkeys(one.rater for one in self.given if not one.by_person))

    @cached_property
    def by_episode(self) -> dict[str, list[Labelled]]:
        """The answers by the key of the task, people's first; none that was asked with a consequence."""
        order = {rater: place for place, rater in enumerate((*self.people, *self.judges))}
        found: dict[str, list[Labelled]] = {}
        for one in sorted(self.given, key=lambda one: order[one.rater]):
            if not one.variant:
                found.setdefault(one.record.metadata.task, []).append(one)
        return found

    def of_most_judges(self, task: str) -> str | None:
        """The category that most judges gave an episode; None for a tie, or without an answer."""
        given = self.by_episode.get(task, ())
        return majority(one.label.category for one in given if not one.by_person)

    def of_first_person(self, task: str) -> str | None:
        """The category that the first person who answered gave an episode; None if nobody has."""
        given = (one.label.category for one in self.by_episode.get(task, ()) if one.by_person)
        return next((category for category in given if category is not None), None)


def who_said_what(given: Sequence[Labelled]) -> str:
    """What each reader says: ``necessity: a, b; no answer (refused): c``."""
    raters: dict[str, list[str]] = {}
    for one in given:
        what = one.label.category or f"no answer ({one.label.why})"
        raters.setdefault(what, []).append(one.rater)
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in raters.items())


class Items:
    """What readers see of a run's episodes, by the key of the task.

    Args:
        file: the run file, which stays open while items are read.
        question: says what is shown.

    Raises:
        UnknownName: the run has no such task.
    """

    def __init__(self, file: RunFile, question: Question) -> None:
        self._file = file
        self._question = question
        # An item of a full-length episode takes 100 KB, and a run has thousands of them.
        self._items = lru_cache(KEPT)(self._make)

    def __getitem__(self, task: str) -> Item:
        return self._items(task)

    def _make(self, task: str) -> Item:
        numbered = self._file.find(task)
        if numbered is None:
            raise UnknownName("task", task, self._file.task_keys(), str(self._file.path))
        return item_of(transcript_in(self._file, numbered), self._question, self._file.manifest.model)


def episodes_about(run: StoredRun, question: Question) -> tuple[EpisodeRecord, ...]:
    """The episodes that a question is about, in the order of the run."""
    wanted = {Outcome.MISALIGNED} if question.about == "misaligned" else SCORED
    return tuple(record for record in run.records if record.stats.outcome in wanted)


def annotated_file(run: Run) -> Path | None:
    """The file with all that was answered about a run; None if nothing was, as for runs in Inspect logs."""
    if not isinstance(run, StoredRun):
        return None
    with RunFile.open(run.path) as file:
        return run.path if file.count("annotation") or file.count("label") else None


def read_labels(path: Path, name: str = "", called: Callable[[str], str] = str) -> list[Answers]:
    """All answers in a run file, one entry for each question in it.

    Args:
        path: the run file.
        name: of a question; only about it.
        called: what to call each rater; must keep the beginning of people's names and tell raters apart.

    Raises:
        NotARunFile: the file is damaged.
    """
    run = StoredRun(path)
    with RunFile.open(path) as file:
        questions = [one for one in stored_questions(file) if name in ("", one.name)]
        return [_answers(run, file, one, called) for one in questions]


def _answers(run: StoredRun, file: RunFile, question: Question, called: Callable[[str], str]) -> Answers:
    episodes = episodes_about(run, question)
    given = (one._replace(rater=called(one.rater)) for one in _given(file, question, episodes))
    return Answers(question, episodes, tuple(given))


def _given(file: RunFile, question: Question, episodes: tuple[EpisodeRecord, ...]) -> Iterator[Labelled]:
    """The answers about these episodes; one that was played again since may no longer be among them."""
    items = Items(file, question)
    about = {record.metadata.task: record for record in episodes}
    keys = {task.number: task.task.key for task in file.tasks()}
    records = {number: about[key] for number, key in keys.items() if key in about}
    for asked, reply in file.annotations(question.digest):
        if asked.task in records:
            label = read_label(question, items[keys[asked.task]], reply)
            yield Labelled(records[asked.task], asked.rater, asked.variant, label)
    for one in file.labels(question.digest):
        if one.task in records:
            item = items[keys[one.task]]
            label = checked_label(question, item, one.category, one.quote, must_quote=False)
            yield Labelled(records[one.task], PERSON + one.person, "", label)
