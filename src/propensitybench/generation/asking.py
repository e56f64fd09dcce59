"""Asks models, and journals each reply before it is used: no request is paid for twice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import BLOCKED, ConversationContext, Message, Reply, StopReason
from propensitybench.clients import Client
from propensitybench.digests import digest, seed_from
from propensitybench.engine import StopCause, StopSignal
from propensitybench.engine.asking import ask
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import Stopped
from propensitybench.errors import ModelError
from propensitybench.generation.journal import PanelJournal

_ENCODE: Final = msgspec.json.Encoder().encode
_REPLY: Final = msgspec.json.Decoder(Reply)


class Unusable(StrEnum):
    """Why a reply holds no text."""

    MALFORMED = "malformed"
    REFUSED = "refused"
    EMPTY = "empty"
    TRUNCATED = "truncated"


COMPLAINTS: Final[Mapping[Unusable, str]] = {
    Unusable.REFUSED: "the reply was withheld; keep to the rules of safety, more abstractly than before",
    Unusable.EMPTY: "the reply was empty",
    Unusable.TRUNCATED: "the reply was cut off by the length limit; write less",
}


class UsableReply(NamedTuple):
    """A reply, and why it holds no text, if it does not."""

    reply: Reply
    failure: Unusable | None


class JournaledModel:
    """Asks one model.

    Args:
        client: of the model.
        journal: of the working folder.
        costs: of all models.
        stop: stops all asking.

    Attributes:
        calls: requests that were answered in this session.
        unusable: replies without a text, journaled ones included.
    """

    def __init__(self, client: Client, journal: PanelJournal, costs: Costs, stop: StopSignal) -> None:
        self.client = client
        self._journal = journal
        self._costs = costs
        self._stop = stop
        self.calls = 0
        self.unusable: Counter[Unusable] = Counter()

    @property
    def model(self) -> str:
        """The model's address."""
        return self.client.model

    async def ask(self, messages: Sequence[Message], turn: tuple[int, int]) -> UsableReply:
        """The reply to a conversation, from the journal if it was given before.

        Args:
            messages: the conversation.
            turn: attempt and round; in another turn the same conversation is another request, so that a
                writer who repeats itself is asked again.

        Raises:
            ModelError: there is no reply.
            Stopped: no more requests are to be sent.
        """
        options = self.client.options if self.client.dialect else None
        asked = {"model": self.model, "options": options, "turn": turn, "messages": messages}
        request = _ENCODE(asked).decode()
        key = digest(request)
        stored = self._journal.get(key)
        if stored is not None:
            reply = _REPLY.decode(stored)
        else:
            reply = await ask(self.client, ConversationContext(key, seed_from(key)), messages, self._stop)
            self._journal.put(key, self.model, request, _ENCODE(reply).decode())
            self.calls += 1
            self._costs.add(self.model, reply.usage)
            if exhausted := self._costs.exhausted():
                self._stop.request_stop(StopCause.BUDGET, exhausted)
        failure = unusable_as(reply)
        if failure is not None:
            self.unusable[failure] += 1
        return UsableReply(reply, failure)


def unusable_as(reply: Reply) -> Unusable | None:
    """Why a reply holds no text; whether it can be read is seen later."""
    if reply.stop in BLOCKED:
        return Unusable.REFUSED
    if reply.stop is StopReason.LENGTH:
        return Unusable.TRUNCATED
    return None if reply.content.strip() else Unusable.EMPTY


__all__ = [
    "COMPLAINTS",
    "JournaledModel",
    "ModelError",
    "Stopped",
    "Unusable",
    "UsableReply",
    "unusable_as",
]
