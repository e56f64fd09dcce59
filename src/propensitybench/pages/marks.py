"""Marks in a transcript's page: the words that readers quoted, with what they read in them."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from propensitybench.escaping import visible
from propensitybench.judging.items import HIDDEN_MODEL, model_pattern
from propensitybench.pages.judged import QuoteReading

# Quotes marked in one message: each is searched for in all of its text.
MAX_MARKS: Final = 20


class _Span(NamedTuple):
    """Where a quote stands in a text; ``number`` counts the quotes of a message from 1."""

    start: int
    end: int
    number: int


class Marks:
    """The marks of one message. Each quote is marked once, where it stands first.

    Args:
        readings: quotes that stand in the message.
        message: its index in the conversation.
        model: the agent's address; readers did not see its name.

    Attributes:
        message: its index in the conversation.
        more: number of quotes that are not marked, because there are too many.
    """

    def __init__(self, readings: Sequence[QuoteReading], message: int, model: str) -> None:
        self.message = message
        self.more = max(0, len(readings) - MAX_MARKS)
        self._waiting = [(reading, _pattern(reading.text, model)) for reading in readings[:MAX_MARKS]]
        self._numbered: list[QuoteReading] = []

    def html(self, text: str) -> Markup:
        """A text of the message as HTML, with the quotes that stand in it marked."""
        return self._marked(text, self._find(text))

    def call(self, name: str, arguments: str) -> tuple[Markup, Markup]:
        """Likewise the name and the arguments of a tool call, which readers saw as one text."""
        spans = self._find(f"{name}({arguments})")
        start, end = len(name) + 1, len(name) + 1 + len(arguments)
        in_name = [one._replace(end=min(one.end, len(name))) for one in spans]
        in_arguments = [
            _Span(max(one.start, start) - start, min(one.end, end) - start, one.number) for one in spans
        ]
        return self._marked(name, in_name), self._marked(arguments, in_arguments)

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The quotes found so far, as the id of each note and what was read in the quote, and by whom."""
        return [(self._note(number), _meaning(one)) for number, one in enumerate(self._numbered, 1)]

    @property
    def unplaced(self) -> list[tuple[str, str]]:
        """What was read in each quote that stands in none of the texts, and the quote.

        The page shows some replies in another form than readers saw.
        """
        return [(_meaning(one), one.text) for one, _ in self._waiting]

    def _note(self, number: int) -> str:
        return f"note-{self.message}-{number}"

    def _find(self, text: str) -> list[_Span]:
        found = [
            (match.end(), match.start(), index)
            for index, (_, pattern) in enumerate(self._waiting)
            if (match := pattern.search(text))
        ]
        spans = []
        for end, start, index in sorted(found):
            self._numbered.append(self._waiting[index][0])
            spans.append(_Span(start, end, len(self._numbered)))
        indexes = {index for *_, index in found}
        self._waiting = [one for index, one in enumerate(self._waiting) if index not in indexes]
        return spans

    def _marked(self, text: str, spans: Sequence[_Span]) -> Markup:
        spans = [one for one in spans if one.start < one.end]
        if not spans:  # as in most messages
            return escape(visible(text))
        edges = sorted({0, len(text), *(edge for one in spans for edge in one[:2])})
        return Markup("").join(piece for edge in pairwise(edges) for piece in self._piece(text, edge, spans))

    def _piece(self, text: str, edges: tuple[int, int], spans: Sequence[_Span]) -> Iterator[str]:
        start, end = edges
        piece = visible(text[start:end])
        here = [one.number for one in spans if one.start <= start and end <= one.end]
        title = "; ".join(_meaning(self._numbered[number - 1]) for number in here)
        yield Markup('<mark title="{}">{}</mark>').format(title, piece) if here else piece
        for number in (one.number for one in spans if one.end == end):
            yield Markup('<sup><a href="#{0}" aria-label="Note {1}: {2}">{1}</a></sup>').format(
                self._note(number), number, _meaning(self._numbered[number - 1])
            )


def _meaning(reading: QuoteReading) -> str:
    return visible(f"{reading.category} ({reading.question}), {', '.join(reading.readers)}")


def _pattern(quote: str, model: str) -> re.Pattern[str]:
    """Finds a quote up to white space, with the model's name where readers saw something else."""
    names = f"{re.escape(HIDDEN_MODEL)}|{model_pattern(model)}"
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in quote.split(HIDDEN_MODEL)]
    return re.compile(f"(?i:{names})".join(parts))
