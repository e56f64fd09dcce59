"""What a judge is asked, and how its answer is read."""

import tomllib
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import BLOCKED, Message, Reply, StopReason
from propensitybench.digests import digest, shuffled
from propensitybench.episode.events import last_object
from propensitybench.judging.items import Item, Passage
from propensitybench.judging.questions import Category, Question


class Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every judge is asked, whatever the question.

    Attributes:
        system, user: templates of the two messages.
        consequences: what a judge may be told of what follows from its answer, by name.
    """

    system: str
    user: str
    consequences: dict[str, str]

    @property
    def digest(self) -> str:
        """Identifies the prompts by their content."""
        return digest(msgspec.json.encode(self))


@cache
def prompts() -> Prompts:
    """The prompts of the package."""
    raw = resources.files(__package__).joinpath("data", "prompts.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(raw), Prompts)


class NoLabel(StrEnum):
    """Why a reply gives no answer: missing data, which widens the bounds."""

    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    UNKNOWN_CATEGORY = "unknown category"
    NO_QUOTE = "no quote"
    FALSE_QUOTE = "quote not in the record"


class Label(NamedTuple):
    """A reader's answer about one episode.

    Attributes:
        category: the answer; None if there is none.
        quote: as the reader gave it.
        passage: where the quote stands; None for an answer that needs none.
        why: why there is no answer.
    """

    category: str | None
    quote: str = ""
    passage: Passage | None = None
    why: NoLabel | None = None


class _AnswerFields(msgspec.Struct, frozen=True):
    category: str
    quote: str = ""


_ANSWER: Final = msgspec.json.Decoder(_AnswerFields)


def ask(question: Question, item: Item, variant: str, rater: str) -> list[Message]:
    """What a judge is asked about an episode.

    The order of the categories depends on question, episode and judge, so that no category is always first.

    Args:
        question: the question.
        item: what is shown.
        variant: name of a consequence; empty says nothing about what follows.
        rater: the judge.
    """
    order = shuffled(range(len(question.categories)), question.digest, item.task, rater)
    given, mark = prompts(), item.mark
    told = f"{given.consequences[variant]}\n\n" if variant else ""
    user = given.user.format(
        mark=mark,
        record=item.text,
        question="\n\n".join(part.strip() for part in (question.text, question.judges) if part),
        categories="\n".join(_line(question.categories[index]) for index in order),
        consequence=told,
        none=question.none,
    )
    return [Message("system", given.system.format(mark=mark)), Message("user", user)]


def _line(category: Category) -> str:
    example = f' For example: "{category.example}"' if category.example else ""
    return f"- {category.name}: {category.definition}{example}"


def read_label(question: Question, item: Item, reply: Reply) -> Label:
    """The answer in a judge's reply.

    Args:
        question: the question.
        item: what was shown.
        reply: as received.
    """
    if reply.stop in BLOCKED:
        return Label(None, why=NoLabel.REFUSED)
    answer = last_object(reply.content, _ANSWER)
    if answer is None:
        cut = reply.stop is StopReason.LENGTH
        return Label(None, why=NoLabel.TRUNCATED if cut else NoLabel.UNREADABLE)
    return checked_label(question, item, answer.category, answer.quote, must_quote=True)


def checked_label(question: Question, item: Item, given: str, quote: str, *, must_quote: bool) -> Label:
    """An answer as a label, or why it is none.

    Args:
        question: the question.
        item: what was shown.
        given: name of the category, in any case.
        quote: words of the agent that show it.
        must_quote: whether an answer needs a quote; a judge's does, a person's does not.
    """
    category = _category(question, given)
    if category is None:
        return Label(None, quote, why=NoLabel.UNKNOWN_CATEGORY)
    if category == question.none:
        return Label(category)
    if not quote.strip():
        return Label(None, why=NoLabel.NO_QUOTE) if must_quote else Label(category)
    passage = item.find(quote)
    if passage is None:
        return Label(None, quote, why=NoLabel.FALSE_QUOTE)
    return Label(category, quote, passage)


def _category(question: Question, given: str) -> str | None:
    wanted = given.strip().casefold()
    return next((name for name in question.names if name.casefold() == wanted), None)
