"""What a monitor reads after each turn: the conversation up to it, and nothing of how the episode ends."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from propensitybench.chat import Message
from propensitybench.judging.items import Item, passages_of
from propensitybench.monitoring.monitors import Monitor
from propensitybench.runs.transcript import Transcript

TASK_ENDS: Final = 2
"""The messages before it are the instructions and the task."""


class MonitoredTurn(NamedTuple):
    """The conversation after a turn of the agent.

    Attributes:
        turn: number of the turn in the episode, from 1.
        item: what a monitor reads.
        messages: the conversation up to the turn, as the agent saw and wrote it.
    """

    turn: int
    item: Item
    messages: tuple[Message, ...]


def steps_of(transcript: Transcript, monitor: Monitor, model: str) -> Iterator[MonitoredTurn]:
    """The steps of an episode, of which each is the same whatever comes after it.

    Args:
        transcript: of the episode; its outcome and the events of its turns are not read.
        monitor: says what is shown.
        model: the agent's address; its name is replaced wherever it stands.
    """
    entries = list(transcript)
    passages = passages_of(entries, model)
    if monitor.hides_thoughts:
        passages = [one for one in passages if one.part != "thoughts"]
    turns = [index for index, entry in enumerate(entries) if entry.turn is not None]
    for turn, last in enumerate(turns, start=1):
        first = 0 if monitor.reads == "transcript" else last
        shown = tuple(one for one in passages if one.message < TASK_ENDS or first <= one.message <= last)
        yield MonitoredTurn(turn, Item(transcript.task, shown), transcript.messages[: last + 1])
