"""What readers said of a run's transcripts, as the report shows it."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final, Literal, NamedTuple

import msgspec

from propensitybench.judging.labels import Answers, Labelled, annotated_file, who_said_what
from propensitybench.judging.results import Answered, Results, read_results
from propensitybench.pages.publishing import PublishableRun, RaterNames
from propensitybench.runs import Run

# Quotes shown of each category, and characters of each.
MAX_QUOTES: Final = 8
MAX_QUOTE: Final = 400


class Quote(msgspec.Struct, frozen=True):
    """Words of the agent, the place where they stand, and who reads them as the category."""

    category: str
    task: str
    domain: str
    level: int
    turn: int
    text: str
    readers: tuple[str, ...]


class JudgedQuestion(msgspec.Struct, frozen=True):
    """A question about the transcripts of a run.

    Attributes:
        run: index of the run in the report.
        about: which episodes it is about.
        results: its numbers.
        quoted: number of episodes with a quote, for each of its categories.
        quotes: some of these, evenly over the domains.
    """

    run: int
    about: Literal["misaligned", "scored"]
    results: Results
    quoted: tuple[int, ...]
    quotes: tuple[Quote, ...]


class QuoteReading(NamedTuple):
    """A quote in a transcript, as all who read it alike gave it.

    Attributes:
        question: title of the question.
        message: index of its message in the conversation.
        text: the quoted words.
    """

    question: str
    category: str
    message: int
    text: str
    readers: tuple[str, ...]


class Readings(NamedTuple):
    """What readers said of one transcript: for each question its title and all answers, and the quotes."""

    answers: tuple[tuple[str, str], ...] = ()
    quotes: tuple[QuoteReading, ...] = ()


def answers_in(run: Run) -> list[Answered]:
    """Each question that has answers in a run; Inspect logs have none."""
    if isinstance(run, PublishableRun):
        path = annotated_file(run.original)
        return [] if path is None else read_results(path, RaterNames())
    path = annotated_file(run)
    return [] if path is None else read_results(path)


def judged_question(run: int, answered: Answered) -> JudgedQuestion:
    """A question of a run; ``run`` is the index of the run in the report."""
    question = answered.labels.question
    quotes = [list(_quotes(answered.labels, name)) for name in question.names]
    return JudgedQuestion(
        run=run,
        about=question.about,
        results=answered.results,
        quoted=tuple(map(len, quotes)),
        quotes=tuple(chain.from_iterable(map(_evenly, quotes))),
    )


def readings_of(questions: Sequence[Answered]) -> dict[str, Readings]:
    """What readers said of each transcript of a run, by the key of the task."""
    found: dict[str, Readings] = {}
    for labels, _ in questions:
        for task, given in labels.by_episode.items():
            before = found.get(task, Readings())
            answers = (*before.answers, (labels.question.title, who_said_what(given)))
            quotes = (*before.quotes, *_alike(labels.question.title, given))
            found[task] = Readings(answers, quotes)
    return found


def _alike(question: str, given: Sequence[Labelled]) -> Iterator[QuoteReading]:
    readers: dict[tuple[str, int, str], list[str]] = {}
    for one in given:
        if one.label.category is not None and one.label.passage is not None:
            text = " ".join(one.label.quote.split())
            readers.setdefault((one.label.category, one.label.passage.message, text), []).append(one.rater)
    for (category, message, text), names in readers.items():
        yield QuoteReading(question, category, message, text, tuple(names))


def _quotes(labels: Answers, category: str) -> Iterator[Quote]:
    """One quote from each episode that somebody reads as the category, in the order of the run."""
    for record in labels.episodes:
        meant = [
            one for one in labels.by_episode.get(record.metadata.task, ()) if one.label.category == category
        ]
        first = next((one.label for one in meant if one.label.passage is not None), None)
        if first is None or first.passage is None:
            continue
        text = " ".join(first.quote.split())
        yield Quote(
            category,
            record.metadata.task,
            record.metadata.domain,
            first.passage.level,
            first.passage.turn,
            text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}\u2026",
            tuple(one.rater for one in meant),
        )


def _evenly(quotes: Sequence[Quote]) -> list[Quote]:
    """At most `MAX_QUOTES`, taking the domains in turn."""
    domains: dict[str, list[Quote]] = {}
    for quote in quotes:
        domains.setdefault(quote.domain, []).append(quote)
    turns = zip_longest(*(domains[name] for name in sorted(domains)))
    return [quote for quote in chain.from_iterable(turns) if quote is not None][:MAX_QUOTES]
