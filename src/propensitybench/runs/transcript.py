"""A task's conversation, as the agent saw it, with the event of each turn."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.chat import Message
from propensitybench.episode import Episode, EpisodeRecord, Event, Turn
from propensitybench.escaping import html


class Entry(NamedTuple):
    """One message of a transcript.

    Attributes:
        message: as the agent saw it or wrote it.
        level: the level it belongs to, from 0.
        turn: the turn, if the message is the agent's.
        opens_level: whether it is the pressure message that opens the level.
    """

    message: Message
    level: int
    turn: Turn | None
    opens_level: bool

    @property
    def title(self) -> str:
        """A heading for the message."""
        if self.turn is not None:
            gave_in = "  <<< GAVE IN" if self.turn.event is Event.MISALIGNED_CALLED else ""
            return f"assistant, level {self.level}, turn {self.turn.turn}: {self.turn.event.value}{gave_in}"
        return f"pressure, level {self.level} begins" if self.opens_level else self.message.role


class Transcript:
    """A task's conversation. Iterating gives its entries; ``print`` shows all of it.

    Attributes:
        task: the task's key.
        record: its record; None if the task has not ended.
        errors: why the task could not be finished, one entry for each attempt.
        messages: the conversation as the agent saw it.
        closing: the side branch with the closing report, if there was one.
        turns: the event of each reply.
    """

    def __init__(
        self, task: str, episode: Episode, record: EpisodeRecord | None, errors: tuple[str, ...] = ()
    ) -> None:
        self.task = task
        self.record = record
        self.errors = errors
        self.messages = tuple(episode.messages)
        self.closing = episode.closing
        self.turns = tuple(episode.turns)
        self._opens = {index: level for level, index in enumerate(episode.level_starts)}

    def __iter__(self) -> Iterator[Entry]:
        turns = {turn.first: turn for turn in self.turns}
        level = 0
        for index, message in enumerate(self.messages):
            level = self._opens.get(index, level)
            yield Entry(message, level, turns.get(index), opens_level=index in self._opens and level > 0)

    @property
    def ending(self) -> str:
        """How the task ended, in a line."""
        if self.record is None:
            return "not finished yet"
        stats = self.record.stats
        conduct = f"; closing report: {stats.conduct.value}" if stats.conduct else ""
        return (
            f"{stats.outcome.value} at level {stats.level} after {stats.turns} turns, "
            f"{stats.aligned_calls} aligned calls{conduct}"
        )

    def __str__(self) -> str:
        parts = [f"=== {entry.title}\n{body(entry.message)}" for entry in self]
        parts += [f"=== {message.role}, closing report\n{body(message)}" for message in self.closing]
        return "\n\n".join([*parts, *(f"error: {error}" for error in self.errors), self.ending])

    def _repr_html_(self) -> str:
        shown = [_shown(entry.title, entry.message, is_open=entry.message.role != "system") for entry in self]
        shown += [_shown(f"{message.role}, closing report", message) for message in self.closing]
        errors = [f"<p>error: {html(error)}</p>" for error in self.errors]
        about = f"<p><b>{html(self.task)}</b>: {html(self.ending)}</p>"
        return "".join([about, *shown, *errors])

    def __repr__(self) -> str:
        return f"<Transcript {self.task}: {len(self.messages)} messages, {self.ending}>"


def _shown(title: str, message: Message, *, is_open: bool = True) -> str:
    text = '<pre style="white-space: pre-wrap; margin: 0.3em 0 0.8em 1em">{}</pre>'
    return (
        f"<details{' open' if is_open else ''}><summary>{html(title)}</summary>"
        f"{text.format(html(body(message)))}</details>"
    )


def body(message: Message) -> str:
    """A message's text and tool calls, one below the other."""
    calls = [f"-> {call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(part for part in (message.content, *calls) if part)
