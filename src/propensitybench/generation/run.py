"""Runs a session of writing: clients, journal, budget, and a stop that loses nothing."""

from collections.abc import Callable
from typing import NamedTuple

from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Price, StopSignal, client_for, price_table
from propensitybench.engine.asking import AskingSession
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import until_stopped
from propensitybench.errors import BadInput
from propensitybench.generation.exchange import JournaledModel, Unusable
from propensitybench.generation.journal import ReplyJournal
from propensitybench.generation.review import last_check
from propensitybench.generation.workfolder import JOURNAL, WorkFolder
from propensitybench.generation.writer import WritingSession, write_all
from propensitybench.simulated import PREFIX as SIMULATED

ClientOf = Callable[[str, ModelOptions, RequestLimits], Client]


class Models(NamedTuple):
    """Who writes and who judges, and how they are asked.

    Attributes:
        writer: the writer's address.
        judges: their addresses; a base URL is the writer's alone.
        options: of the writer.
        transport: of all.
        budget: of all together.
        price: of the writer; None looks it up.
        client: makes the client of an address.
    """

    writer: str
    judges: tuple[str, ...] = ()
    options: ModelOptions = ModelOptions()
    transport: RequestLimits = RequestLimits()
    budget: Budget = Budget()
    price: Price | None = None
    client: ClientOf = client_for


class WritingResult(NamedTuple):
    """How a session ended.

    Attributes:
        written: texts written in this session.
        aside: texts set aside in this session.
        finished, total: texts that are done or set aside, of how many.
        calls: requests that were answered in this session.
        unusable: replies without a text, by kind, over the session.
        tokens, usd: spent over all sessions; ``usd`` is None if a price is unknown.
        stop: why it stopped, if it did.
    """

    written: int
    aside: int
    finished: int
    total: int
    calls: int
    unusable: dict[str, int]
    tokens: int
    usd: float | None
    stop: StopSignal


class WritingProgress(NamedTuple):
    """Texts that are done or set aside, of how many, and what it has cost."""

    finished: int
    total: int
    calls: int
    tokens: int
    usd: float | None


async def write(
    work: WorkFolder,
    models: Models,
    *,
    again: bool = False,
    on_progress: Callable[[WritingProgress], None] | None = None,
    stop: StopSignal | None = None,
) -> WritingResult:
    """Writes what is missing; the same call resumes it, and no reply is paid for twice.

    Args:
        work: the working folder.
        models: who writes and judges.
        again: also writes again what was set aside or failed the last check.
        on_progress: called after each text.
        stop: stops it when requested, from any thread; cancelling does too.

    Raises:
        BadInput: a model cannot be used, or a budget in dollars has no price.
    """
    for model in (models.writer, *models.judges):
        if model.startswith(SIMULATED):
            raise BadInput(f"{model}: is a simulated agent, which can neither write nor read")
    prices = {model: price_of(models, model) for model in dict.fromkeys((models.writer, *models.judges))}
    checked = last_check(work)
    with ReplyJournal(work.root / JOURNAL) as journal:
        costs = Costs({model: journal.usage(model) for model in prices}, prices, models.budget)
        asking = AskingSession(journal, costs, stop=stop)
        plain = ModelOptions(base_url=models.options.base_url)
        clients = [models.client(models.writer, models.options, models.transport)]
        clients += [models.client(model, plain, models.transport) for model in models.judges]
        asked = [JournaledModel(client, asking) for client in clients]

        def tell(finished: int, total: int) -> None:
            if on_progress is not None:
                on_progress(WritingProgress(finished, total, asking.calls, costs.tokens, costs.usd))

        failed = {} if checked is None else {file: found for file, found in checked.issues.items() if found}
        session = WritingSession(work, asked[0], asked[1:], again, failed, tell)
        await until_stopped(write_all(session), asking.stop, clients)
    unusable = {kind.value: sum(one.unusable[kind] for one in asked) for kind in Unusable}
    counts = (session.written, session.aside, session.finished, session.total, asking.calls)
    return WritingResult(*counts, unusable, costs.tokens, costs.usd, asking.stop)


def price_of(models: Models, model: str) -> Price | None:
    """The price of a model; None if it is unknown."""
    given = models.price if model == models.writer else None
    return given or price_table().find(model)
