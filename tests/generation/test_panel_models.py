"""Models as readers: what they are sent, what is accepted, and what is asked for again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.openai_server import (
    MAY_PASS,
    REFUSALS,
    STOPS_RUN,
    Answer,
    Behaviour,
    Json,
    Server,
    completion,
    running,
    says,
)
from helpers.panel_folders import honest_scores, judge, shown, working_folder

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import StopCause, client_for
from propensitybench.errors import BadData
from propensitybench.generation.journal import ReplyJournal
from propensitybench.generation.panel import Round
from propensitybench.generation.panel_forms import CRITERIA, PERSONAS, PanelReading, brief
from propensitybench.generation.panel_items import DRAWN, Draw, PanelItem, draw_items, read_source
from propensitybench.generation.panel_models import ModelReadings, PanelReader, read_with

SEVERAL = 6


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[PanelItem]:
    source = read_source(working_folder(tmp_path_factory.mktemp("work"), sound=SEVERAL), DRAWN)
    return draw_items(source, [], Draw(SEVERAL, 0, 0))


def asked(
    tmp_path: Path, items: list[PanelItem], behaviour: Behaviour, index: int = 0, **settings: Any
) -> tuple[ModelReadings, Server]:
    """What one judge has read, and the server that it was."""

    async def run() -> tuple[ModelReadings, Server]:
        async with running(behaviour) as server:
            with ReplyJournal(tmp_path / "journal.db") as journal:
                found = Round(settings.pop("round", 1), tmp_path, tuple(items), {})
                client = client_for(
                    "m", ModelOptions(base_url=server.base_url), RequestLimits(**settings), {}
                )
                reader = PanelReader(f"judge-{index + 1}", index, client)
                return await read_with([reader], found, journal), server

    return asyncio.run(run())


def read(
    tmp_path: Path, items: list[PanelItem], behaviour: Behaviour, index: int = 0, **settings: Any
) -> tuple[list[PanelReading], Server]:
    """The readings of one judge, and the server that it was."""
    found, server = asked(tmp_path, items, behaviour, index, **settings)
    return found.readings[f"judge-{index + 1}"], server


@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_item_is_read_alone_in_the_reader_s_order(
    tmp_path: Path, items: list[PanelItem], index: int
) -> None:
    readings, server = read(tmp_path, items, judge(), index, concurrency=1)
    assert [reading.item for reading in readings] == [item.name for item in items]
    by_name = {item.name: item.text for item in items}
    order = []
    for request in server.requests():
        assert "tools" not in request
        (message,) = request["messages"]
        assert message["content"].startswith(brief(index, SEVERAL).strip())
        assert message["content"].startswith(f"You are {PERSONAS[index % 2]}. In this")
        ((name, text),) = shown(request).items()
        assert text.strip() == by_name[name].strip()
        order.append(name)
    assert order == sorted(by_name, reverse=index % 2 == 1)
    expected = honest_scores(items[0].text, server.requests()[0]["messages"][0]["content"][:60])
    scores = {criterion: expected[criterion] for criterion in CRITERIA}
    assert readings[0] == PanelReading("item01", scores, expected["comment"], expected["quote"])


def one_entry(**changes: Any) -> Behaviour:
    """A careful judge's reply with some fields changed; ``...`` leaves a field out."""
    return judge(lambda _n, entry, _t: {k: v for k, v in {**entry, **changes}.items() if v is not ...})


def always(answer: Answer) -> Behaviour:
    return lambda _request, _number: answer


BAD: dict[str, tuple[Behaviour, str]] = {
    "no score": (one_entry(C=...), "C is missing"),
    "null": (one_entry(C=None), "C is missing"),
    "a half": (one_entry(C=4.5), "C must be an integer from 1 to 7, found '4.5'"),
    "text": (one_entry(C="5"), "C must be an integer from 1 to 7, found '5'"),
    "true": (one_entry(C=True), "C must be an integer from 1 to 7, found 'True'"),
    "zero": (one_entry(C=0), "C must be an integer from 1 to 7, found '0'"),
    "eight": (one_entry(C=8), "C must be an integer from 1 to 7, found '8'"),
    "empty comment": (one_entry(comment=" "), "comment is missing"),
    "no quote": (one_entry(quote=...), "quote is missing or shorter"),
    "made-up quote": (one_entry(quote="the capacity broker sings"), "quote does not occur word for word"),
    "another field": (one_entry(total=40), "total is not asked for"),
    "prose": (always(says("A fine set of items.")), "is not exactly one JSON object"),
    "a list": (always(says("[1, 2]")), "is not a JSON object"),
    "cut off": (always(completion({"content": "{"}, "length")), "cut off by the length limit"),
    "empty": (always(completion({"content": ""})), "was empty"),
    "refused": (always(REFUSALS["finish content_filter"]), "was withheld"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_reply_is_asked_for_again_at_most_twice(
    tmp_path: Path, items: list[PanelItem], bad: str
) -> None:
    behaviour, reason = BAD[bad]

    def at_first(request: Json, number: int) -> Answer:
        return (behaviour if number == 1 else judge())(request, number)

    (reading,), server = read(tmp_path, items[:1], at_first)
    assert not reading.is_missing
    order, answer, complaint = server.requests()[1]["messages"]
    assert (order["role"], answer["role"], reason in complaint["content"]) == ("user", "assistant", True)
    (gone,), server = read(tmp_path, items[:1], behaviour, round=2)
    assert (gone.is_missing, server.calls) == (True, 3)
    assert gone.comment.startswith("no valid reply: ")
    assert reason in gone.comment


def test_pressure_is_null_without_messages(tmp_path: Path, items: list[PanelItem]) -> None:
    text = items[0].text.partition("LATER MESSAGE 1\n")[0]
    silent = PanelItem("item01", DRAWN, "a", "b", "", "", text)
    scores_pressure = judge(lambda _name, entry, turn: {**entry, "P": 3} if turn == 1 else entry)
    (reading,), server = read(tmp_path, [silent], scores_pressure)
    assert reading.scores["P"] is None
    assert "P must be left out" in server.requests()[1]["messages"][2]["content"]


def test_no_reply_is_paid_for_twice(tmp_path: Path, items: list[PanelItem]) -> None:
    first, server = read(tmp_path, items, judge())
    again, silent = read(tmp_path, items, judge())
    assert (again, server.calls, silent.calls) == (first, SEVERAL, 0)
    # Another round, another reader or another text is another reading.
    assert read(tmp_path, items, judge(), round=2)[1].calls == SEVERAL
    assert read(tmp_path, items, judge(), index=2)[1].calls == SEVERAL
    changed = msgspec.structs.replace(items[0], text=items[0].text + ".")
    assert read(tmp_path, [changed, *items[1:]], judge())[1].calls == 1


def test_what_got_no_reply_is_sent_by_the_next_call(tmp_path: Path, items: list[PanelItem]) -> None:
    def fails(request: Json, number: int) -> Answer:
        return MAY_PASS["500"] if "item04" in shown(request) else judge()(request, number)

    found, _ = asked(tmp_path, items, fails, max_retries=0)
    assert (found.failures, found.last_failure[:13]) == (1, "judge-1 (m): ")
    readings, server = read(tmp_path, items, judge())
    assert (server.calls, list(shown(server.requests()[0]))) == (1, ["item04"])
    assert not any(reading.is_missing for reading in readings)


@pytest.mark.parametrize("why", ["401", "402"])
def test_an_endpoint_that_cannot_answer_stops_the_reading(
    tmp_path: Path, items: list[PanelItem], why: str
) -> None:
    def stops(_request: Json, number: int) -> Answer:
        return says("not JSON") if number == 1 else STOPS_RUN[why]

    found, _ = asked(tmp_path, items, stops, concurrency=1)
    assert found.stop.cause in (StopCause.BAD_INPUT, StopCause.PROVIDER)
    _, server = read(tmp_path, items, judge())
    # The reply that could not be used is in the journal, and is complained about.
    assert server.calls == SEVERAL
    complained = [body for body in server.requests() if len(body["messages"]) > 1]
    assert [json.dumps(body).count("not JSON") for body in complained] == [1]


def test_a_file_that_is_not_a_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("hello, this is a text file and not a database at all")
    with pytest.raises(BadData, match="cannot be used as the journal of replies"):
        ReplyJournal(tmp_path / "journal.db")
