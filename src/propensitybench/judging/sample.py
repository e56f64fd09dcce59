"""The episodes that people read: a stratified sample, stored in the run file when it is drawn."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil
from typing import Final, NamedTuple

import msgspec

from propensitybench.digests import shuffled
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput
from propensitybench.judging.labels import PERSON, episodes_about, read_labels
from propensitybench.judging.questions import Question
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile
from propensitybench.store.manifest import check_seed
from propensitybench.store.reading import RunReader

DEFAULT_NUMBER: Final = 200
"""The standard error of a kappa of .75 is then about .04."""
DEFAULT_TWICE: Final = 0.25


class Stratum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The episodes of a domain that judges gave the same label.

    Attributes:
        label: the label of most judges; None without one.
        domain: the domain.
        tasks: keys of all its episodes, in the random order in which they are drawn.
    """

    label: str | None
    domain: str
    tasks: tuple[str, ...]


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A stratified random sample without replacement, evenly over its strata.

    The strata are those of the time when it was drawn, so later answers and episodes do not change it. A
    smaller sample is the beginning of a larger one with the same strata and seed.

    Attributes:
        question: digest of the question.
        seed: of the draw.
        number: of episodes in the sample.
        twice: share of them that two people read.
        strata: all episodes that could be drawn.
    """

    question: str
    seed: int
    number: int
    twice: float
    strata: tuple[Stratum, ...]

    def __post_init__(self) -> None:
        """Raises `BadInput` unless every stratum has an episode, and every episode a chance."""
        check_seed(self.seed)
        tasks = [task for stratum in self.strata for task in stratum.tasks]
        if len(set(tasks)) < len(tasks) or not all(stratum.tasks for stratum in self.strata):
            raise BadInput("a stratum is empty, or an episode is in two of them")
        if not 0 <= self.twice <= 1:
            raise BadInput(f"--twice {self.twice}: must be from 0 to 1")
        if not len(self.strata) <= self.number <= len(tasks):
            raise BadInput(
                f"--number {self.number}: must be from {len(self.strata)}, one for each label of the judges "
                f"in each domain, to {len(tasks)}"
            )

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """Keys of its tasks; the beginning of any length is spread evenly over the strata."""
        found: list[str] = []
        turn = 0
        while len(found) < self.number:
            for index in shuffled(range(len(self.strata)), self.question, self.seed, turn):
                found += self.strata[index].tasks[turn : turn + 1]
            turn += 1
        return tuple(found[: self.number])

    @property
    def read_twice(self) -> tuple[str, ...]:
        """Keys of the tasks that two people read."""
        return self.drawn[: ceil(self.twice * self.number)]

    def left(self, readers: Mapping[str, Sequence[str]], person: str) -> list[str]:
        """Keys of the tasks that a person has still to read, in this person's order.

        First come those that two people read and two have not, then those that nobody has read.

        Args:
            readers: the people who have read a task, by its key.
            person: the person.
        """
        places = shuffled(range(self.number), self.question, PERSON + person)
        order = [self.drawn[index] for index in places]
        twice = set(self.read_twice)
        wanted = [
            task
            for task in order
            if person not in readers.get(task, ()) and len(readers.get(task, ())) < 1 + (task in twice)
        ]
        return sorted(wanted, key=lambda task: task not in twice)


class Size(NamedTuple):
    """What a person asks of a sample; None keeps that of the stored sample, or is the default."""

    number: int | None = None
    seed: int | None = None
    twice: float | None = None


def draw(
    episodes: Sequence[EpisodeRecord], labels: Mapping[str, str], question: Question, size: Size
) -> Sample:
    """Draws a sample.

    Args:
        episodes: those that the question is about.
        labels: the judges' label by the key of the task, of those that have one.
        question: the question.
        size: a number above that of the episodes takes them all.

    Raises:
        BadInput: there are no episodes, or more strata than the sample may have episodes.
    """
    if not episodes:
        raise BadInput(f"--question {question.name}: no episode of the run is one that it is about")
    seed = 0 if size.seed is None else size.seed
    tasks: dict[tuple[str | None, str], list[str]] = {}
    for record in episodes:
        key = (labels.get(record.metadata.task), record.metadata.domain)
        tasks.setdefault(key, []).append(record.metadata.task)
    strata = [
        Stratum(
            label, domain, tuple(keys[i] for i in shuffled(range(len(keys)), question.digest, seed, place))
        )
        for place, ((label, domain), keys) in enumerate(tasks.items())
    ]
    return Sample(
        question.digest,
        seed,
        min(DEFAULT_NUMBER if size.number is None else size.number, len(episodes)),
        DEFAULT_TWICE if size.twice is None else size.twice,
        tuple(strata),
    )


def sample_of(run: StoredRun, file: RunFile, question: Question, size: Size) -> Sample:
    """The sample of a question: the one in the run file, or a new one, which is stored there.

    Args:
        run: the run.
        file: the same, open for writing.
        question: the question.
        size: a larger number than that of the stored sample adds episodes to it.

    Raises:
        BadInput: a sample that is stored has another seed or share, or more episodes, or none can be drawn.
    """
    known = stored_sample(file, question)
    if known is None:
        sample = draw(episodes_about(run, question), labels_of_most_judges(run, question), question, size)
    else:
        sample = _grown(known, size)
    if sample != known:
        file.annotate(questions={question.digest: question.body})
        file.keep_sample(question.digest, msgspec.json.encode(sample).decode())
    return sample


def stored_sample(file: RunReader, question: Question) -> Sample | None:
    """The sample of a question in a run file; None if none was drawn.

    Raises:
        NotARunFile: it is damaged.
    """
    body = file.sample(question.digest)
    if body is None:
        return None
    with file.rows.decoding("a sample"):
        sample = msgspec.json.decode(body, type=Sample)
        if sample.question != question.digest:
            raise BadInput("it is one of another question")
        return sample


def labels_of_most_judges(run: StoredRun, question: Question) -> dict[str, str]:
    """The label that most judges gave, by the key of the task; without those that have a tie."""
    found = {
        task: labels.of_most_judges(task)
        for labels in read_labels(run.path, question.name)
        for task in labels.by_episode
    }
    return {task: label for task, label in found.items() if label is not None}


def _grown(known: Sample, size: Size) -> Sample:
    for name in ("seed", "twice"):
        asked, had = getattr(size, name), getattr(known, name)
        if asked not in (None, had):
            raise BadInput(f"--{name} {asked}: the sample was drawn with --{name} {had}; leave it out")
    if size.number is None:
        return known
    if size.number < known.number:
        raise BadInput(
            f"--number {size.number}: the sample has {known.number} episodes already; it can only be enlarged"
        )
    most = sum(len(stratum.tasks) for stratum in known.strata)
    return msgspec.structs.replace(known, number=min(size.number, most))
