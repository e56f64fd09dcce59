"""What readers said of a run's episodes, derived from the annotations in its run file."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.episode import SCORED, EpisodeRecord, Outcome
from propensitybench.errors import UnknownName
from propensitybench.judging.items import Item, item_of
from propensitybench.judging.prompts import Label, read_label
from propensitybench.judging.questions import Question, stored_questions
from propensitybench.runs import Run, StoredRun
from propensitybench.runs.stored import transcript_in
from propensitybench.store import RunFile

PERSON: Final = "person/"
"""How the names of people begin among the raters; every other rater is a model."""
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


class Answers(NamedTuple):
    """All answers to a question about a run.

    Attributes:
        question: the question.
        episodes: those that the question is about, in the order of the run, whether read or not.
        given: the answers, in the order in which they came.
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

    @property
    def people(self) -> tuple[str, ...]:
        """The people who read, in the order of their first answer."""
        return tuple(dict.fromkeys(one.rater for one in self.given if one.by_person))

    @property
    def judges(self) -> tuple[str, ...]:
        """The models that read, in the order of their first answer."""
        return tuple(dict.fromkeys(one.rater for one in self.given if not one.by_person))


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
        return run.path if file.count("annotation") else None


def read_labels(path: Path, name: str = "", called: Callable[[str], str] = str) -> list[Answers]:
    """All answers in a run file, one entry for each question that has some.

    Args:
        path: the run file.
        name: of a question; only about it.
        called: what to call each rater; must keep the beginning of people's names and tell raters apart.

    Raises:
        NotARunFile: the file is damaged.
    """
    run = StoredRun(path)
    with RunFile.open(path) as file:
        questions = stored_questions(file)
        return [_labels(run, file, one, called) for one in questions if name in ("", one.name)]


def _labels(run: StoredRun, file: RunFile, question: Question, called: Callable[[str], str]) -> Answers:
    episodes = episodes_about(run, question)
    given = (one._replace(rater=called(one.rater)) for one in _given(file, question, episodes))
    return Answers(question, episodes, tuple(given))


def _given(file: RunFile, question: Question, episodes: tuple[EpisodeRecord, ...]) -> Iterator[Labelled]:
    items = Items(file, question)
    records = {record.metadata.task: record for record in episodes}
    keys = {task.number: task.task.key for task in file.tasks()}
    for key, reply in file.annotations(question.digest):
        record = records.get(keys.get(key.task, ""))
        if record is None:
            continue  # the episode was played again since, and ended otherwise
        must_quote = not key.rater.startswith(PERSON)
        label = read_label(question, items[record.metadata.task], reply, must_quote=must_quote)
        yield Labelled(record, key.rater, key.variant, label)
