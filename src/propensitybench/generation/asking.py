"""Asks models, and journals each reply before it is used: no request is paid for twice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import BLOCKED, ConversationContext, Message, Reply, StopReason
from propensitybench.clients import Adaptable, Client
from propensitybench.digests import digest, seed_from
from propensitybench.engine import Price, StopCause, StopSignal
from propensitybench.engine.asking import ask
from propensitybench.engine.episodes import Stopped
from propensitybench.engine.prices import Budget, Spending
from propensitybench.errors import ModelError
from propensitybench.generation.journal import Journal

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


class Asked(NamedTuple):
    """A reply, and why it holds no text, if it does not."""

    reply: Reply
    failure: Unusable | None


class Costs:
    """What all models of a working folder have cost, over all sessions.

    Args:
        journal: with the replies so far.
        prices: by model; None if unknown.
        budget: of all models together.
    """

    def __init__(self, journal: Journal, prices: Mapping[str, Price | None], budget: Budget) -> None:
        self._budget = budget
        self._by_model = {
            model: Spending(journal.usage(model), price, Budget()) for model, price in prices.items()
        }

    def add(self, model: str, reply: Reply) -> None:
        """Adds a reply."""
        self._by_model[model].add(reply.usage)

    @property
    def tokens(self) -> int:
        """Tokens of all models."""
        return sum(spent.tokens for spent in self._by_model.values())

    @property
    def usd(self) -> float | None:
        """Cost of all models; None if a price is unknown."""
        costs = [spent.usd for spent in self._by_model.values()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def exhausted(self) -> str:
        """A sentence about the limit that has been reached; empty if there is none."""
        most, usd = self._budget, self.usd
        if most.tokens is not None and self.tokens >= most.tokens:
            return f"the budget of {most.tokens} tokens is used up ({self.tokens} spent)"
        if most.usd is not None and usd is not None and usd >= most.usd:
            return f"the budget of ${most.usd:g} is used up (${usd:.2f} spent)"
        return ""


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

    def __init__(self, client: Client, journal: Journal, costs: Costs, stop: StopSignal) -> None:
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

    async def ask(self, messages: Sequence[Message], turn: tuple[int, int]) -> Asked:
        """The reply to a conversation, from the journal if it was given before.

        Args:
            messages: the conversation.
            turn: attempt and round; in another turn the same conversation is another request, so that a
                writer who repeats itself is asked again.

        Raises:
            ModelError: there is no reply.
            Stopped: no more requests are to be sent.
        """
        options = self.client.options if isinstance(self.client, Adaptable) else None
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
            self._costs.add(self.model, reply)
            if exhausted := self._costs.exhausted():
                self._stop.request_stop(StopCause.BUDGET, exhausted)
        failure = unusable_as(reply)
        if failure is not None:
            self.unusable[failure] += 1
        return Asked(reply, failure)


def unusable_as(reply: Reply) -> Unusable | None:
    """Why a reply holds no text; whether it can be read is seen later."""
    if reply.stop in BLOCKED:
        return Unusable.REFUSED
    if reply.stop is StopReason.LENGTH:
        return Unusable.TRUNCATED
    return None if reply.content.strip() else Unusable.EMPTY


__all__ = [
    "COMPLAINTS",
    "Asked",
    "Costs",
    "JournaledModel",
    "ModelError",
    "Stopped",
    "Unusable",
    "unusable_as",
]
