"""Questions about transcripts, as files: what a reader sees, the answers, and what each answer means."""

from functools import cached_property
from typing import Final, Literal

import msgspec

from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.judging.library import TomlLibrary
from propensitybench.store.reading import RunReader

QUESTION_FORMAT: Final = "propensitybench-question/1"
_ENCODER: Final = msgspec.json.Encoder()

View = Literal["transcript", "act", "words"]
"""What a reader sees: everything; the task and the last level; only the agent's own words."""
About = Literal["misaligned", "scored"]


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer.

    Attributes:
        name: as readers give it.
        definition: when it applies.
        example: a passage to which it applies.
    """

    name: str
    definition: str
    example: str = ""


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A question about one transcript, which has exactly one answer.

    Attributes:
        name: unique among the questions of a run.
        title: what its answers are called in tables.
        about: the episodes that it is asked about.
        sees: what a reader sees of them.
        text: the question.
        categories: the answers; a judge sees them in a random order.
        none: the category that says that there is nothing to quote; every other one needs a quote.
        hides_calls: whether tool calls are not shown, so that the transcript does not say what was done.
        judges: what only judges are told.
        people: what only people are told.
    """

    format: Literal["propensitybench-question/1"]
    name: str
    title: str
    about: About
    sees: View
    text: str
    categories: tuple[Category, ...]
    none: str
    hides_calls: bool = False
    judges: str = ""
    people: str = ""

    def __post_init__(self) -> None:
        """Raises `BadInput` unless the categories can be told apart."""
        names = self.names
        if len(names) < 2 or len({name.casefold() for name in names}) < len(names):
            raise BadInput("a question needs two categories or more, with different names")
        if self.none not in names:
            raise BadInput(f"none: {self.none!r} is not one of its categories")
        if not all((self.name, self.title, self.text, *names)):
            raise BadInput("name, title, text and the names of categories must not be empty")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its categories, in the order of its file."""
        return tuple(category.name for category in self.categories)

    @cached_property
    def body(self) -> str:
        """The question as stored in a run file."""
        return _ENCODER.encode(self).decode()

    @cached_property
    def digest(self) -> str:
        """Identifies the question by its content."""
        return digest(self.body)


_LIBRARY: Final = TomlLibrary("question", QUESTION_FORMAT, Question)


def question_names() -> list[str]:
    """Names of the built-in questions."""
    return _LIBRARY.names()


def read_question(given: str) -> Question:
    """A built-in question by its name, or one from a file.

    Args:
        given: the name, or a path that ends in ``.toml``.

    Raises:
        BadInput: there is no such question, or the file is not one.
    """
    return _LIBRARY.read(given)


def stored_questions(file: RunReader) -> list[Question]:
    """The questions about transcripts in a run file; raises `NotARunFile` for one that is damaged."""
    return _LIBRARY.stored(file)


def check_name(file: RunReader, question: Question) -> None:
    """Raises `BadInput` if a run file has another question of that name."""
    for known in stored_questions(file):
        if known.name == question.name and known.digest != question.digest:
            raise BadInput(
                f"--question {question.name}: {file.path} has another question of that name; rename this one"
            )
