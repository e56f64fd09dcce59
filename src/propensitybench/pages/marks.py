"""Marks in a transcript's page: the words that readers quoted, with what they read in them."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from propensitybench.escaping import html
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
    """

    def __init__(self, readings: Sequence[QuoteReading], message: int, model: str) -> None:
        self._message = message
        self._waiting = [(reading, _pattern(reading.text, model)) for reading in readings[:MAX_MARKS]]
        self._numbered: list[QuoteReading] = []
        self._more = max(0, len(readings) - MAX_MARKS)

    def html(self, text: str) -> str:
        """A text of the message as HTML, with the quotes that stand in it marked."""
        return self._marked(text, self._find(text))

    def call(self, name: str, arguments: str) -> tuple[str, str]:
        """Likewise the name and the arguments of a tool call, which readers saw as one text."""
        spans = self._find(f"{name}({arguments})")
        start, end = len(name) + 1, len(name) + 1 + len(arguments)
        in_name = [one._replace(end=min(one.end, len(name))) for one in spans]
        in_arguments = [
            _Span(max(one.start, start) - start, min(one.end, end) - start, one.number) for one in spans
        ]
        return self._marked(name, in_name), self._marked(arguments, in_arguments)

    def notes(self) -> str:
        """A list of the quotes as HTML: what was read in each, and by whom; empty if there are none.

        It belongs after the texts. A quote that stands in none of them, because the page shows a reply in
        another form than readers saw, is given in full.
        """
        if not self._numbered and not self._waiting:
            return ""
        lines = [
            f'<li id="{self._note(number)}">{_meaning(reading)}</li>'
            for number, reading in enumerate(self._numbered, 1)
        ]
        lines += [f"<li>{_meaning(one)}: <q>{html(one.text)}</q></li>" for one, _ in self._waiting]
        rest = f"<p>{self._more} more quotes are not marked.</p>" if self._more else ""
        return f'<div class="readings"><h4>Quoted by readers</h4><ol>{"".join(lines)}</ol>{rest}</div>'

    def _note(self, number: int) -> str:
        return f"note-{self._message}-{number}"

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

    def _marked(self, text: str, spans: Sequence[_Span]) -> str:
        spans = [one for one in spans if one.start < one.end]
        edges = sorted({0, len(text), *(edge for one in spans for edge in one[:2])})
        return "".join("".join(self._piece(text, edge, spans)) for edge in pairwise(edges))

    def _piece(self, text: str, edges: tuple[int, int], spans: Sequence[_Span]) -> Iterator[str]:
        start, end = edges
        piece = html(text[start:end])
        here = [one.number for one in spans if one.start <= start and end <= one.end]
        title = "; ".join(_meaning(self._numbered[number - 1]) for number in here)
        yield f'<mark title="{title}">{piece}</mark>' if here else piece
        for number in (one.number for one in spans if one.end == end):
            label = f"Note {number}: {_meaning(self._numbered[number - 1])}"
            yield f'<sup><a href="#{self._note(number)}" aria-label="{label}">{number}</a></sup>'


def _meaning(reading: QuoteReading) -> str:
    return html(f"{reading.category} ({reading.question}), {', '.join(reading.readers)}")


def _pattern(quote: str, model: str) -> re.Pattern[str]:
    """Finds a quote up to white space, with the model's name where readers saw something else."""
    names = f"{re.escape(HIDDEN_MODEL)}|{model_pattern(model)}"
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in quote.split(HIDDEN_MODEL)]
    return re.compile(f"(?i:{names})".join(parts))
