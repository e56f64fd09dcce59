"""The answers to a question as numbers: shares, agreement, the judges' errors, and corrected shares."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from propensitybench.digests import seed_from
from propensitybench.episode import EpisodeRecord
from propensitybench.judging.early_awareness import act_by_spoken
from propensitybench.judging.items import Part
from propensitybench.judging.labels import Answers, read_labels
from propensitybench.judging.prompts import Label
from propensitybench.judging.sample import Sample, stored_sample
from propensitybench.metrics.agreement import Alpha, RaterPair, alpha_interval, pairs
from propensitybench.metrics.arrays import Codes, Names
from propensitybench.metrics.awareness import ActByAwareness
from propensitybench.metrics.corrected import (
    Bias,
    Corrected,
    LabelShare,
    matrix_shares,
    uncorrected_shares,
)
from propensitybench.metrics.judge_error import Accuracy, Confusion, accuracy, confusion
from propensitybench.metrics.judged import MIN_LABELLED, MISSING, NOT_DRAWN, Judged, Resamples
from propensitybench.metrics.ppi import ppi_shares
from propensitybench.metrics.relabelled import Relabelled, relabelled
from propensitybench.metrics.sample import ClusteredSample
from propensitybench.metrics.table import LEVELS
from propensitybench.store import RunFile
from propensitybench.taxonomy import Naming


class ReaderResult(msgspec.Struct, frozen=True):
    """What a reader has answered.

    Attributes:
        rater: a model's address, or ``person/NAME``.
        answered: number of episodes with an answer.
        missing: number of replies without one, by kind.
        categories: number of answers by category.
    """

    rater: str
    answered: int
    missing: dict[str, int]
    categories: dict[str, int]


class CategoryShare(msgspec.Struct, frozen=True):
    """The share of episodes of a category, as a mean over domains.

    Attributes:
        category: its name.
        judges: the share of the judges' labels; None without judges.
        corrected: the same corrected by people's labels (PPI++), right whatever the judges' errors; people's
            own share if there are no judges; None with too few labels.
        matrix: the same corrected by the whole table of the judges' errors (Rogan and Gladen, for several
            categories); None with too few labels.
        bias: the judges' share minus ``corrected``.
        biased: whether the interval of the bias excludes 0.
        accuracy: of the judges in this category; None with too few labels.
        by_domain: ``corrected`` in each domain, or else ``judges``.
    """

    category: str
    judges: LabelShare | None
    corrected: LabelShare | None
    matrix: LabelShare | None
    bias: Bias | None
    biased: bool | None
    accuracy: Accuracy | None
    by_domain: dict[str, LabelShare]


class Agreement(msgspec.Struct, frozen=True):
    """How far readers agree.

    Attributes:
        raters: the readers.
        alpha: Krippendorff's, over all of them.
        pairs: each two of them, by their index in ``raters``.
    """

    raters: tuple[str, ...]
    alpha: Alpha
    pairs: tuple[RaterPair, ...]


class Consequence(msgspec.Struct, frozen=True):
    """What a judge answers when it is told what follows, against its usual answers."""

    judge: str
    consequence: str
    change: Relabelled


class Results(msgspec.Struct, frozen=True):
    """All numbers about one question.

    Attributes:
        question: its name.
        title: what its answers are called.
        categories: names of the answers.
        episodes: number of episodes that it is about.
        read: number of those that a judge was asked about, or people if there are no judges.
        readers: the answers of each reader.
        shares: one for each category.
        spoken_in: number of the judges' quotes by the part of a reply in which they stand.
        labelled: number of episodes that people have labelled; of two people the first one counts.
        drawn: number of episodes that people are to read.
        judges_agree: agreement of two judges or more; None with fewer.
        people_agree: likewise, of people.
        confusion: the judges' labels against people's; None with too few labels.
        consequences: of telling judges what follows from their answers.
        act: by naming, what agents did that had said it before level 1, and the others; see `act_by_spoken`.
            Empty for a question about misaligned episodes, or if none had said it.
    """

    question: str
    title: str
    categories: tuple[str, ...]
    episodes: int
    read: int
    readers: tuple[ReaderResult, ...]
    shares: tuple[CategoryShare, ...]
    spoken_in: dict[Part, int]
    labelled: int
    drawn: int
    judges_agree: Agreement | None
    people_agree: Agreement | None
    confusion: Confusion | None
    consequences: tuple[Consequence, ...]
    act: dict[Naming, ActByAwareness]


class Answered(NamedTuple):
    """A question's answers and their numbers."""

    labels: Answers
    results: Results


def read_results(path: Path, called: Callable[[str], str] = str) -> list[Answered]:
    """Each question that has answers in a run file; raises `NotARunFile`. ``called`` as in `read_labels`."""
    with RunFile.open(path) as file:
        levels = file.manifest.protocol.last_level + 1
        return [
            Answered(one, results_of(one, stored_sample(file, one.question), levels))
            for one in read_labels(path, called=called)
            if one.given
        ]


def results_of(labels: Answers, sample: Sample | None = None, levels: int = LEVELS) -> Results:
    """The numbers about one question.

    An episode's label is the category that most judges gave; with a tie, or without an answer, it is missing.

    Args:
        labels: all answers.
        sample: the episodes that people are to read.
        levels: number of levels of the run's protocol, including level 0.
    """
    work = _Work(labels, sample)
    judged = work.judged()
    both = int((judged.labelled & (judged.judge >= 0)).sum())
    enough = both >= MIN_LABELLED and bool(labels.judges)
    return Results(
        question=labels.question.name,
        title=labels.question.title,
        categories=labels.question.names,
        episodes=len(labels.episodes),
        read=len(work.episodes),
        readers=tuple(_reader(labels, rater) for rater in (*labels.judges, *labels.people)),
        shares=tuple(_shares(labels, judged, work.rng("shares"))),
        spoken_in=_spoken_in(labels),
        labelled=int(judged.labelled.sum()),
        drawn=len(sample.drawn) if sample else 0,
        judges_agree=work.agreement(labels.judges),
        people_agree=work.agreement(labels.people),
        confusion=confusion(judged) if enough else None,
        consequences=tuple(work.consequences()),
        act=act_by_spoken(labels, levels) if labels.question.about == "scored" else {},
    )


def read_by_people(labels: Answers, sample: Sample | None, naming: Naming) -> Judged:
    """What people say of the episodes of one naming, whatever judges say.

    Judges' labels remain in the strata from which people's episodes were drawn, and nowhere else.
    """
    work = _Work(labels, sample)
    own = np.array([record.metadata.naming == naming for record in work.episodes], dtype=np.bool_)
    judged = work.judged().where(own)
    none = labels.question.names.index(labels.question.none)
    return replace(judged, judge=np.full(len(judged.judge), none))


class _Work:
    """The answers as arrays: one entry for each episode that was read."""

    def __init__(self, labels: Answers, sample: Sample | None) -> None:
        self._labels = labels
        self._sample = sample
        self._drawn = frozenset(sample.drawn if sample else ())
        self._codes = {name: code for code, name in enumerate(labels.question.names)}
        self._given = {rater: labels.by(rater) for rater in (*labels.judges, *labels.people)}
        read = {task for rater in (labels.judges or labels.people) for task in self._given[rater]}
        self.episodes = [record for record in labels.episodes if record.metadata.task in read]

    def rng(self, purpose: str) -> np.random.Generator:
        """The source of randomness of one computation; the same for the same question."""
        return np.random.default_rng(seed_from(self._labels.question.digest, purpose))

    def judged(self) -> Judged:
        """The episodes with the judges' and people's labels."""
        labels = self._labels
        if labels.judges:
            judge = [self._code(labels.of_most_judges(task)) for task in self._tasks]
        else:
            judge = [0 for _ in self._tasks]  # makes no difference to people's shares
        people = [self._code(labels.of_first_person(task)) for task in self._tasks]
        for place, task in enumerate(self._tasks):
            if people[place] == MISSING and task not in self._drawn:
                people[place] = NOT_DRAWN
        return Judged(
            *self._places(self.episodes),
            np.array(judge, dtype=np.int64),
            np.array(people, dtype=np.int64),
            np.array(self._strata(), dtype=np.int64),
            len(self._codes),
        )

    @property
    def _tasks(self) -> list[str]:
        return [record.metadata.task for record in self.episodes]

    @staticmethod
    def _places(episodes: Sequence[EpisodeRecord]) -> tuple[Names, Names]:
        """The domain and the scenario of each episode."""
        return (
            np.array([record.metadata.domain for record in episodes], dtype=np.str_),
            np.array([record.metadata.scenario for record in episodes], dtype=np.str_),
        )

    def _code(self, category: str | None) -> int:
        return MISSING if category is None else self._codes[category]

    def _strata(self) -> list[int]:
        """Episodes that were not there when the sample was drawn are strata by themselves, by domain."""
        known: dict[str, int] = {}
        if self._sample is not None:
            for number, stratum in enumerate(self._sample.strata):
                known |= dict.fromkeys(stratum.tasks, number)
        others: dict[str, int] = {}
        start = len(self._sample.strata) if self._sample else 0
        return [
            known[record.metadata.task]
            if record.metadata.task in known
            else start + others.setdefault(record.metadata.domain, len(others))
            for record in self.episodes
        ]

    def agreement(self, raters: Sequence[str]) -> Agreement | None:
        """The agreement of some readers."""
        if len(raters) < 2:
            return None
        ratings = [
            [
                None if label is None or label.category is None else float(self._codes[label.category])
                for label in map(self._given[rater].get, self._tasks)
            ]
            for rater in raters
        ]
        _, scenarios = self._places(self.episodes)
        alpha = alpha_interval(ratings, scenarios, self.rng("alpha"))
        return Agreement(tuple(raters), alpha, tuple(pairs(ratings, scenarios, self.rng("pairs"))))

    def consequences(self) -> Iterator[Consequence]:
        """Each judge's answers under each consequence, on the episodes with both replies."""
        labels = self._labels
        variants = dict.fromkeys((one.rater, one.variant) for one in labels.given if one.variant)
        for judge, variant in variants:
            usual, told = labels.by(judge), labels.by(judge, variant)
            episodes = [
                record for record in labels.episodes if record.metadata.task in usual.keys() & told.keys()
            ]
            if not episodes:
                continue
            first, second = (self._codes_of(episodes, given) for given in (usual, told))
            rng = self.rng(f"{judge} {variant}")
            sample = ClusteredSample(*self._places(episodes))
            change = relabelled(sample, (first, second), len(self._codes), rng)
            yield Consequence(judge, variant, change)

    def _codes_of(self, episodes: Sequence[EpisodeRecord], given: Mapping[str, Label]) -> Codes:
        return np.array([self._code(given[one.metadata.task].category) for one in episodes], dtype=np.int64)


def _shares(labels: Answers, judged: Judged, rng: np.random.Generator) -> Iterator[CategoryShare]:
    names = labels.question.names
    judges = uncorrected_shares(judged) if labels.judges and len(judged.domain) else [None] * len(names)
    corrected = _Corrections.none(len(names))
    if int((judged.labelled & (judged.judge >= 0)).sum()) >= MIN_LABELLED:
        corrected = _Corrections.of(Resamples(judged, rng), alone=not labels.judges)
    for number, name in enumerate(names):
        own, ppi = judges[number], corrected.ppi[number]
        matrix, rates = corrected.matrix[number], corrected.accuracy[number]
        parts = ppi.by_domain if ppi else own.by_domain if own else {}
        yield CategoryShare(
            name,
            own.share if own else None,
            ppi.share if ppi else None,
            matrix.share if matrix else None,
            ppi.bias if ppi and own else None,
            _excludes_zero(ppi.bias) if ppi and own else None,
            rates,
            parts,
        )


def _excludes_zero(bias: Bias) -> bool | None:
    return None if bias.ci95 is None else not bias.ci95.low <= 0 <= bias.ci95.high


class _Corrections(NamedTuple):
    """One entry for each category."""

    ppi: Sequence[Corrected | None]
    matrix: Sequence[Corrected | None]
    accuracy: Sequence[Accuracy | None]

    @classmethod
    def none(cls, categories: int) -> "_Corrections":
        nothing = [None] * categories
        return cls(nothing, nothing, nothing)

    @classmethod
    def of(cls, resamples: Resamples, *, alone: bool) -> "_Corrections":
        """Corrections of the judges' labels, or people's labels alone."""
        if alone:
            shares = ppi_shares(resamples, power=0.0)
            return cls.none(len(shares))._replace(ppi=shares)
        return cls(ppi_shares(resamples), matrix_shares(resamples), accuracy(resamples))


def _reader(labels: Answers, rater: str) -> ReaderResult:
    given = labels.by(rater).values()
    categories = Counter(label.category for label in given if label.category is not None)
    return ReaderResult(
        rater,
        categories.total(),
        dict(Counter(label.why.value for label in given if label.why is not None)),
        {name: categories[name] for name in labels.question.names},
    )


def _spoken_in(labels: Answers) -> dict[Part, int]:
    return dict(
        Counter(
            one.label.passage.part
            for one in labels.given
            if one.label.passage is not None and not one.by_person and not one.variant
        )
    )
