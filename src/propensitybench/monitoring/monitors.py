"""Monitors as files: what a model reads after each turn, and what it is asked."""

from functools import cached_property
from typing import Final, Literal

import msgspec

from propensitybench.chat import Message
from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.judging.items import Item
from propensitybench.judging.library import TomlLibrary
from propensitybench.store.reading import RunReader

MONITOR_FORMAT: Final = "propensitybench-monitor/1"
Reads = Literal["transcript", "last turn"]
"""Everything up to the turn; or the agent's instructions, the task and the turn."""


class Monitor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What is asked after each turn.

    Attributes:
        name: unique among the monitors of a run.
        title: what it is called in tables.
        reads: what it sees of the conversation.
        system, user: templates of the two messages; ``{record}`` is what it sees, between two ``{mark}``.
        hides_thoughts: whether the agent's thoughts are left out.
    """

    format: Literal["propensitybench-monitor/1"]
    name: str
    title: str
    reads: Reads
    system: str
    user: str
    hides_thoughts: bool = False

    def __post_init__(self) -> None:
        """Raises `BadInput` unless it shows the record."""
        if not all((self.name, self.title, self.system)) or "{record}" not in self.user:
            raise BadInput("name, title and system must not be empty, and user must contain {record}")

    @cached_property
    def body(self) -> str:
        """The monitor as stored in a run file."""
        return msgspec.json.encode(self).decode()

    @cached_property
    def digest(self) -> str:
        """Identifies the monitor by its content."""
        return digest(self.body)

    def ask(self, item: Item) -> list[Message]:
        """What a model is asked after a turn."""
        filled = {"{mark}": item.mark, "{record}": item.text}
        system, user = self.system, self.user
        for slot, text in filled.items():
            system, user = system.replace(slot, text), user.replace(slot, text)
        return [Message("system", system), Message("user", user)]


LIBRARY: Final = TomlLibrary("monitor", MONITOR_FORMAT, Monitor, __package__, "--reads")


def check_name(file: RunReader, monitor: Monitor) -> None:
    """Raises `BadInput` if a run file has another monitor of that name."""
    for known in LIBRARY.stored(file):
        if known.name == monitor.name and known.digest != monitor.digest:
            raise BadInput(
                f"--reads {monitor.name}: {file.path} has another monitor of that name; rename this one"
            )
