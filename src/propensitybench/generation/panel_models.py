"""Models as readers of the panel."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import Message
from propensitybench.clients import Client
from propensitybench.engine import Budget, StopSignal
from propensitybench.engine.asking import AskingSession
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import until_stopped
from propensitybench.errors import ModelError
from propensitybench.generation.exchange import AskedObject, JournaledModel, Json, together
from propensitybench.generation.journal import JournalKey, ReplyJournal
from propensitybench.generation.panel_forms import PanelReading, brief, in_order, missing, reading_of
from propensitybench.generation.panel_items import PanelItem
from propensitybench.generation.templates import render

ROUNDS: Final = 3
"""How often a reader is asked until it answers in the form that it was told."""


class PanelReader(msgspec.Struct, frozen=True):
    """A model that reads.

    Attributes:
        name: of the reader in this round.
        index: its number from 0, which gives its persona and the order in which it reads.
        client: of the model; is closed at the end.
    """

    name: str
    index: int
    client: Client


class ReadingPlan(NamedTuple):
    """What the readers of a round are asked.

    Attributes:
        items: in the order of their names.
        round: its number; a text that is read again in another round gets new replies.
        batch: items in a request.
    """

    items: Sequence[PanelItem]
    round: int
    batch: int = 1


class ModelReadings(NamedTuple):
    """What models have read.

    Attributes:
        readings: by reader, in the order of the items.
        failures: requests without a reply; the same call sends only those again.
        last_failure: why the last of them has none.
        stop: whether and why reading was stopped.
    """

    readings: dict[str, list[PanelReading]]
    failures: int
    last_failure: str
    stop: StopSignal


async def read_with(
    readers: Sequence[PanelReader],
    plan: ReadingPlan,
    journal: ReplyJournal,
    on_read: Callable[[], None] | None = None,
    stop: StopSignal | None = None,
) -> ModelReadings:
    """Has models read all items, each alone.

    A reply that is not as asked is asked for again, at most twice; then the scores are missing.

    Args:
        readers: the models.
        plan: what to read.
        journal: of the replies.
        on_read: called after each item.
        stop: stops it when requested, from any thread.
    """
    models = {reader.client.model for reader in readers}
    costs = Costs({model: journal.usage(model) for model in models}, dict.fromkeys(models), Budget())
    asking = AskingSession(journal, costs, stop=stop)
    found: dict[str, dict[str, PanelReading]] = {reader.name: {} for reader in readers}
    failures: list[str] = []

    async def read(reader: PanelReader, batch: Sequence[PanelItem]) -> None:
        try:
            readings = await _read_batch(reader, batch, plan, asking)
        except ModelError as error:
            failures.append(f"{reader.name} ({reader.client.model}): {error}")
            return
        for reading in readings:
            found[reader.name][reading.item] = reading
            if on_read is not None:
                on_read()

    jobs = [
        read(reader, batch)
        for reader in readers
        for batch in _batches(in_order(plan.items, reader.index), plan.batch)
    ]
    await until_stopped(together(jobs), asking.stop, [reader.client for reader in readers])
    readings = {
        name: [by_item[item.name] for item in plan.items if item.name in by_item]
        for name, by_item in found.items()
    }
    return ModelReadings(readings, len(failures), failures[-1] if failures else "", asking.stop)


def _batches(items: Sequence[PanelItem], size: int) -> Iterator[Sequence[PanelItem]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def _read_batch(
    reader: PanelReader, batch: Sequence[PanelItem], plan: ReadingPlan, asking: AskingSession[JournalKey]
) -> list[PanelReading]:
    """One reading for each item of the batch."""
    found: dict[str, PanelReading] = {}

    async def read(text: Json) -> Sequence[str]:
        accepted, issues = readings_in(text, [item for item in batch if item.name not in found])
        found.update(accepted)
        return issues

    number = len(plan.items)
    text = brief(reader.index, number) + "\n" + render("panel_request", items=batch, number=number)
    exchange = await JournaledModel(reader.client, asking).ask_for(
        [Message("user", text)], read, ("panel", plan.round, reader.name), ROUNDS
    )
    return [found.get(item.name) or missing(item, _why(item, exchange)) for item in batch]


def _why(item: PanelItem, exchange: AskedObject) -> str:
    own = [one for one in exchange.complaints if one.startswith(f"{item.name}: ")]
    return "no valid reply: " + "; ".join(own or exchange.complaints)


def readings_in(text: Json, items: Sequence[PanelItem]) -> tuple[dict[str, PanelReading], list[str]]:
    """The valid readings in the object of a reply, and what is wrong with the others."""
    entries = text.get("items")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return {}, ['the reply must be an object with a list "items" of objects']
    names = [str(entry.get("item", "")).removesuffix(".txt") for entry in entries]
    if len(set(names)) < len(names):
        return {}, ["an item has two entries"]
    answers = dict(zip(names, entries, strict=True))
    found, issues = {}, []
    for item in items:
        given = answers.get(item.name)
        reading, wrong = (None, ["has no entry"]) if given is None else reading_of(item, given, gaps=False)
        issues += [f"{item.name}: {what}" for what in wrong]
        if reading is not None:
            found[item.name] = reading
    return found, issues
