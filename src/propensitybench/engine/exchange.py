"""What a coordinator and its workers say to each other; plain values that can be pickled."""

import msgspec

from propensitybench.engine.episodes import Entry
from propensitybench.engine.session import Stalled
from propensitybench.engine.stop import StopCause


class Leased(msgspec.Struct, frozen=True):
    """A task to play.

    Attributes:
        task: its number in the run.
        replies: its stored replies, encoded, in order.
    """

    task: int
    replies: tuple[str, ...] = ()


class Rates(msgspec.Struct, frozen=True):
    """Requests and tokens a minute, for each API key; None is unlimited."""

    rpm: float | None = None
    tpm: float | None = None


class Order(msgspec.Struct, frozen=True):
    """What the coordinator tells a worker.

    Attributes:
        lease: tasks to play, after those that it has.
        rates: from now on; None leaves them as they are.
        hold: seconds in which to send no requests, because another worker was refused for sending too many.
        stop: whether to stop. Replies in flight have a few seconds to arrive.
    """

    lease: tuple[Leased, ...] = ()
    rates: Rates | None = None
    hold: float = 0.0
    stop: bool = False


class Report(msgspec.Struct, frozen=True):
    """What a worker tells the coordinator.

    Attributes:
        entries: journal entries since the last report, which are in its own file, in the order in which they
            were committed.
        throttled: how often it was refused for sending too many requests, since it began.
        stalled: tasks that have waited long for a reply, longest first, with the seconds.
        ended: whether it plays no more.
        cause: why it stopped, if that was not the coordinator's order.
        reason: the reason in one line.
        notes: warnings since the last report.
    """

    entries: tuple[Entry, ...] = ()
    throttled: int = 0
    stalled: Stalled = ()
    ended: bool = False
    cause: StopCause | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
