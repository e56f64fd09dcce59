"""Models as readers of the panel."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from propensitybench.chat import (
    BLOCKED,
    UNDECODABLE,
    ConversationContext,
    Message,
    Reply,
    Request,
    StopReason,
)
from propensitybench.clients import Client, Conversation
from propensitybench.digests import digest, seed_from
from propensitybench.episode.prompt import NO_REPLY
from propensitybench.errors import ModelError
from propensitybench.generation.journal import PanelJournal
from propensitybench.generation.panel_forms import PanelReading, brief, in_order, missing, prompt, reading_of
from propensitybench.generation.panel_items import PanelItem

# After a reply that cannot be used.
REPEATS: Final = 2
_FENCED: Final = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)
Answers = dict[str, dict[str, Any]]


class PanelReader(msgspec.Struct, frozen=True):
    """A model that reads.

    Attributes:
        name: of the reader in this round.
        seat: its number from 0, which gives its persona and the order in which it reads.
        client: answers; is closed at the end.
    """

    name: str
    seat: int
    client: Client


class Sitting(msgspec.Struct, frozen=True):
    """What all readers of a round share.

    Attributes:
        items: in the order of their names.
        round: its number; a text that is read again in another round gets new replies.
        journal: of the replies.
        batch: items in a request.
        concurrency: requests in flight.
    """

    items: Sequence[PanelItem]
    round: int
    journal: PanelJournal
    batch: int = 1
    concurrency: int = 8


async def read_with(
    reader: PanelReader, sitting: Sitting, on_read: Callable[[PanelReading], None] | None = None
) -> list[PanelReading]:
    """A model's readings of all items, in the order of the items.

    A reply that is not as asked is asked for again, at most twice; then the scores are missing.

    Args:
        reader: the model.
        sitting: what to read.
        on_read: called after each item.

    Raises:
        ModelError: some requests got no reply. Those that got one are in the journal, so the same call sends
            only the others.
        RunStopped: no request can succeed any more.
    """
    batches = _batches(in_order(sitting.items, reader.seat), sitting.batch)
    found: dict[str, PanelReading] = {}
    failed: list[ModelError] = []

    async def work(waiting: Iterator[Sequence[PanelItem]]) -> None:
        for batch in waiting:
            try:
                readings = await _Exchange(reader, sitting, batch).readings()
            except ModelError as error:
                failed.append(error)
                continue
            for reading in readings:
                found[reading.item] = reading
                if on_read is not None:
                    on_read(reading)

    workers = [asyncio.create_task(work(batches)) for _ in range(sitting.concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await reader.client.close()
    if failed:
        count = f"{len(failed)} {'request' if len(failed) == 1 else 'requests'}"
        raise ModelError(
            f"{reader.name} ({reader.client.model}): {count} got no reply, the last one: {failed[-1]}; "
            "the same command sends only those again"
        )
    return [found[item.name] for item in sitting.items]


def _batches(items: Sequence[PanelItem], size: int) -> Iterator[Sequence[PanelItem]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


class _Exchange:
    """The conversation about one batch of items."""

    def __init__(self, reader: PanelReader, sitting: Sitting, batch: Sequence[PanelItem]) -> None:
        number = len(sitting.items)
        text = brief(reader.seat, number) + "\n" + prompt("panel_request", items=batch, number=number)
        self._reader = reader
        self._sitting = sitting
        self._batch = batch
        self._messages = [Message("user", text)]
        self._conversation: Conversation | None = None

    async def readings(self) -> list[PanelReading]:
        """One reading for each item of the batch."""
        found: dict[str, PanelReading] = {}
        issues: dict[str, list[str]] = {}
        for _ in range(1 + REPEATS):
            reply = await self._reply()
            left = [item for item in self._batch if item.name not in found]
            accepted, issues = readings_in(reply, left)
            found |= accepted
            if not issues:
                break
            texts = list(dict.fromkeys(what for some in issues.values() for what in some))
            again = prompt("panel_again", issues=texts, names=list(issues))
            self._messages += [
                Message("assistant", reply.content or NO_REPLY),
                Message("user", again),
            ]
        gone = {
            item.name: missing(item, "no valid reply: " + "; ".join(issues[item.name]))
            for item in self._batch
            if item.name in issues
        }
        return [(found | gone)[item.name] for item in self._batch]

    async def _reply(self) -> Reply:
        """The reply to the messages so far, from the journal or from the model."""
        reader, sitting = self._reader, self._sitting
        asked = msgspec.json.encode(self._messages).decode()
        model = reader.client.model
        # The endpoint may have another address when the round is resumed.
        plain = msgspec.structs.replace(reader.client.options, base_url=None)
        options = msgspec.json.encode(plain, order="sorted").decode()
        key = digest("panel/1", str(sitting.round), reader.name, model, options, asked)
        stored = sitting.journal.get(key)
        if stored is not None:
            return msgspec.json.decode(stored, type=Reply)
        if self._conversation is None:
            name = f"{reader.name}/{self._batch[0].name}"
            replies = sum(message.role == "assistant" for message in self._messages)
            context = ConversationContext(name, seed_from(sitting.round, name), replies)
            self._conversation = reader.client.open(context)
        reply = await self._conversation.reply(Request(self._messages, ()))
        sitting.journal.put(key, model, asked, msgspec.json.encode(reply).decode())
        return reply


def readings_in(
    reply: Reply, items: Sequence[PanelItem]
) -> tuple[dict[str, PanelReading], dict[str, list[str]]]:
    """The valid readings in a reply, and what is wrong with the others, by item."""
    answers, wrong = _answers(reply)
    if wrong:
        return {}, {item.name: [wrong] for item in items}
    found, issues = {}, {}
    for item in items:
        if item.name not in answers:
            issues[item.name] = [f"{item.name}: has no entry"]
            continue
        reading, what = reading_of(item, answers[item.name], gaps=False)
        if reading is None:
            issues[item.name] = [f"{item.name}: {one}" for one in what]
        else:
            found[item.name] = reading
    return found, issues


def _answers(reply: Reply) -> tuple[Answers, str]:
    """The entries of a reply by item, or why there are none."""
    if reply.stop in BLOCKED:
        return {}, "the reply was refused or filtered"
    if reply.stop is StopReason.LENGTH:
        return {}, "the reply was cut off by the length limit"
    if not reply.content.strip():
        return {}, "the reply was empty"
    fenced = _FENCED.fullmatch(reply.content)
    try:
        whole = msgspec.json.decode(fenced[1] if fenced else reply.content)
    except UNDECODABLE as error:
        return {}, f"the reply is not one JSON object ({error})"
    entries = whole.get("items") if isinstance(whole, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return {}, 'the reply must be an object with a list "items" of objects'
    names = [str(entry.get("item", "")).removesuffix(".txt") for entry in entries]
    if len(set(names)) < len(names):
        return {}, "an item has two entries"
    return dict(zip(names, entries, strict=True)), ""
