"""Asks a model for a JSON object until the object can be used."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import BLOCKED, ConversationContext, Message, Reply, Request, StopReason
from propensitybench.clients import Client
from propensitybench.digests import digest, seed_from
from propensitybench.engine.asking import AskingSession, Prompt
from propensitybench.episode.prompt import NO_REPLY
from propensitybench.generation.journal import JournalKey
from propensitybench.generation.templates import render
from propensitybench.scenarios.rolefile import RepeatedKey, no_repeats

Json = dict[str, Any]
Read = Callable[[Json], Awaitable[Sequence[str]]]
"""Reads the object of a reply; gives what is wrong with it."""
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*)\n```", re.DOTALL)


class Unusable(StrEnum):
    """Why a reply holds no object."""

    MALFORMED = "malformed"
    REFUSED = "refused"
    EMPTY = "empty"
    TRUNCATED = "truncated"


class Unreadable(Exception):
    """A reply that is not one JSON object; the text is a complaint for the model."""

    def __init__(self, complaint: str, kind: Unusable = Unusable.MALFORMED) -> None:
        super().__init__(complaint)
        self.kind = kind


class AskedObject(NamedTuple):
    """How asking ended.

    Attributes:
        text: the last object; None if there was none.
        complaints: what is wrong with it; empty if it can be used.
        rounds: replies that it took.
    """

    text: Json | None
    complaints: Sequence[str]
    rounds: int


class Draft(NamedTuple):
    """A text that is there already, as JSON, and what is wrong with it."""

    text: str
    complaints: Sequence[str]


class JournaledModel:
    """A model that is asked for JSON objects.

    Args:
        client: of the model.
        session: keeps the replies in the journal of the working folder.

    Attributes:
        unusable: replies without an object, those from the journal included.
    """

    def __init__(self, client: Client, session: AskingSession[JournalKey]) -> None:
        self.client = client
        self._session = session
        self.unusable: Counter[Unusable] = Counter()

    async def ask_for(
        self,
        messages: Sequence[Message],
        read: Read,
        turn: tuple[str | int, ...],
        rounds: int,
        draft: Draft | None = None,
    ) -> AskedObject:
        """Asks for an object, and again with what is wrong with it, up to a number of rounds.

        Args:
            messages: the order.
            read: reads an object.
            turn: in another turn the same conversation is another request, so that a model that repeats
                itself is asked again.
            rounds: how often to ask.
            draft: to be corrected.

        Raises:
            ModelError: there is no reply.
            Stopped: no more requests are to be sent.
        """
        text, last_reply, complaints = None, draft.text if draft else "", draft.complaints if draft else ()
        for number in range(1, rounds + 1):
            asked = [*messages, *corrections(last_reply, complaints)] if complaints else messages
            reply = await self._ask(asked, (*turn, number))
            last_reply = reply.content
            try:
                text = object_in(reply)
            except Unreadable as error:
                self.unusable[error.kind] += 1
                last_reply, complaints = last_reply if error.kind is Unusable.MALFORMED else "", [str(error)]
            else:
                complaints = await read(text)
                if not complaints:
                    return AskedObject(text, (), number)
        return AskedObject(text, complaints, rounds)

    async def _ask(self, messages: Sequence[Message], turn: tuple[str | int, ...]) -> Reply:
        # The endpoint may have another address when a command is resumed.
        options = msgspec.structs.replace(self.client.options, base_url=None)
        asked = {"model": self.client.model, "options": options, "turn": turn, "messages": messages}
        request = msgspec.json.encode(asked).decode()
        key = JournalKey(digest(request), self.client.model, request)
        context = ConversationContext(key.digest, seed_from(key.digest))
        return await self._session.ask(self.client, key, Prompt(Request(messages, ()), context))


async def together(jobs: Sequence[Awaitable[None]]) -> None:
    """Waits for all jobs, and then raises the first error; so a stop lets replies in flight arrive."""
    for outcome in await asyncio.gather(*jobs, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def corrections(last_reply: str, complaints: Sequence[str]) -> list[Message]:
    """The last reply, and what is wrong with it."""
    return [
        Message("assistant", last_reply.strip() or NO_REPLY),
        Message("user", render("complaints", complaints=list(complaints))),
    ]


def object_in(reply: Reply) -> Json:
    """The JSON object of a reply, which may stand in a code fence and holds nothing else.

    Raises:
        Unreadable: it holds something else, or the same key twice in one object.
    """
    if reply.stop in BLOCKED:
        what = "the reply was withheld; keep to the rules of safety, more abstractly than before"
        raise Unreadable(what, Unusable.REFUSED)
    if reply.stop is StopReason.LENGTH:
        raise Unreadable("the reply was cut off by the length limit; write less", Unusable.TRUNCATED)
    text = reply.content.strip()
    if not text:
        raise Unreadable("the reply was empty", Unusable.EMPTY)
    fenced = _FENCED.fullmatch(text)
    try:
        found = json.loads(fenced[1] if fenced else text, object_pairs_hook=no_repeats)
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Unreadable(f"the reply is not exactly one JSON object ({error.msg}, {where})") from error
    except RecursionError as error:
        raise Unreadable("the reply is nested too deeply") from error
    except RepeatedKey as error:
        raise Unreadable(f"the reply has the same key twice in one object: {error}") from error
    except ValueError as error:  # NaN, unpaired surrogates, huge numbers
        raise Unreadable(f"the reply is not a valid JSON object ({error})") from error
    if not isinstance(found, dict):
        raise Unreadable("the reply is not a JSON object")
    return found
