"""Models as readers of the panel."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import Message
from propensitybench.clients import Client
from propensitybench.engine import Budget, StopSignal
from propensitybench.engine.asking import AskingSession
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import until_stopped
from propensitybench.errors import ModelError
from propensitybench.generation.exchange import JournaledModel, Json, together
from propensitybench.generation.journal import ReplyJournal
from propensitybench.generation.panel import Round
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
    found: Round,
    journal: ReplyJournal,
    on_read: Callable[[], None] | None = None,
    stop: StopSignal | None = None,
) -> ModelReadings:
    """Has models read all items, each alone.

    A reply that is not as asked is asked for again, at most twice; then the scores are missing.

    Args:
        readers: the models.
        found: what to read; a text that is read again in another round gets new replies.
        journal: of the replies.
        on_read: called after each item.
        stop: stops it when requested, from any thread.
    """
    models = {reader.client.model for reader in readers}
    costs = Costs({model: journal.usage(model) for model in models}, dict.fromkeys(models), Budget())
    asking = AskingSession(journal, costs, stop=stop)
    by_reader: dict[str, dict[str, PanelReading]] = {reader.name: {} for reader in readers}
    failures: list[str] = []

    async def read(reader: PanelReader, item: PanelItem) -> None:
        asked = JournaledModel(reader.client, asking)
        text = brief(reader.index, len(found.items)) + "\n"
        text += render("panel_request", item=item, number=len(found.items))
        try:
            reading = await _reading(asked, item, text, ("panel", found.number, reader.name))
        except ModelError as error:
            failures.append(f"{reader.name} ({reader.client.model}): {error}")
            return
        by_reader[reader.name][item.name] = reading
        if on_read is not None:
            on_read()

    jobs = [read(reader, item) for reader in readers for item in in_order(found.items, reader.index)]
    await until_stopped(together(jobs), asking.stop, [reader.client for reader in readers])
    readings = {
        name: [read_of[item.name] for item in found.items if item.name in read_of]
        for name, read_of in by_reader.items()
    }
    return ModelReadings(readings, len(failures), failures[-1] if failures else "", asking.stop)


async def _reading(
    model: JournaledModel, item: PanelItem, text: str, turn: tuple[str | int, ...]
) -> PanelReading:
    reading: PanelReading | None = None

    async def read(given: Json) -> Sequence[str]:
        nonlocal reading
        reading, wrong = reading_of(item, given, gaps=False)
        return wrong

    asked = await model.ask_for([Message("user", text)], read, turn, ROUNDS)
    return reading or missing(item, "no valid reply: " + "; ".join(asked.complaints))
