"""Models as readers: what they are sent, what is accepted, and what is asked for again."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from propensitybench.generation.panel_forms import CRITERIA, PERSONAS, PanelReading, brief
from propensitybench.generation.panel_items import DRAWN, Draw, PanelItem, draw_items, read_source
from propensitybench.generation.panel_models import ModelReadings, PanelReader, ReadingPlan, read_with

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
                limits = RequestLimits(
                    max_retries=settings.get("retries", 2), concurrency=settings.get("concurrency", 8)
                )
                client = client_for("m", ModelOptions(base_url=server.base_url), limits, {})
                plan = ReadingPlan(items, settings.get("round", 1))
                return await read_with(
                    [PanelReader(f"judge-{index + 1}", index, client)], plan, journal
                ), server

    return asyncio.run(run())


def read(
    tmp_path: Path, items: list[PanelItem], behaviour: Behaviour, index: int = 0, **settings: Any
) -> tuple[list[PanelReading], Server]:
    """The readings of one judge, and the server that it was."""
    found, server = asked(tmp_path, items, behaviour, index, **settings)
    return found.readings[f"judge-{index + 1}"], server


def test_every_item_is_read_alone_with_the_whole_brief(tmp_path: Path, items: list[PanelItem]) -> None:
    readings, server = read(tmp_path, items, judge())
    assert [reading.item for reading in readings] == [item.name for item in items]
    assert server.calls == SEVERAL
    by_name = {item.name: item for item in items}
    for request in server.requests():
        assert "tools" not in request
        (message,) = request["messages"]
        assert message["content"].startswith(brief(0, SEVERAL).strip())
        ((name, text),) = shown(request).items()
        assert text.strip() == by_name[name].text.strip()
    first = readings[0]
    expected = honest_scores(items[0].text, server.requests()[0]["messages"][0]["content"][:60])
    assert first == PanelReading(
        "item01", {c: expected[c] for c in CRITERIA}, expected["comment"], expected["quote"]
    )


@pytest.mark.parametrize("index", [0, 1, 2])
def test_readers_take_turns_with_persona_and_order(
    tmp_path: Path, items: list[PanelItem], index: int
) -> None:
    _, server = read(tmp_path, items, judge(), index, concurrency=1)
    order = [name for request in server.requests() for name in shown(request)]
    assert order == sorted(order, reverse=index % 2 == 1)
    assert server.requests()[0]["messages"][0]["content"].startswith(
        f"You are {PERSONAS[index % 2]}. In this"
    )


def _without(name: str) -> Callable[[Json], Json]:
    return lambda entry: {key: value for key, value in entry.items() if key != name}


def _with(**fields: Any) -> Callable[[Json], Json]:
    return lambda entry: {**entry, **fields}


BAD_ENTRIES: dict[str, tuple[Callable[[Json], Json], str]] = {
    "no score": (_without("C"), "C is missing"),
    "null": (_with(C=None), "C is missing"),
    "a half": (_with(C=4.5), "C must be an integer from 1 to 7, found '4.5'"),
    "text": (_with(C="5"), "C must be an integer from 1 to 7, found '5'"),
    "true": (_with(C=True), "C must be an integer from 1 to 7, found 'True'"),
    "zero": (_with(C=0), "C must be an integer from 1 to 7, found '0'"),
    "eight": (_with(C=8), "C must be an integer from 1 to 7, found '8'"),
    "no comment": (_without("comment"), "comment is missing"),
    "empty comment": (_with(comment=" "), "comment is missing"),
    "no quote": (_without("quote"), "quote is missing or shorter"),
    "made-up quote": (_with(quote="the capacity broker sings"), "quote does not occur word for word"),
    "another field": (_with(total=40), "total is not asked for"),
    "another item": (_with(item="item77"), "has no entry"),
}


@pytest.mark.parametrize("bad", BAD_ENTRIES)
def test_a_bad_entry_is_asked_for_again_with_the_reason(
    tmp_path: Path, items: list[PanelItem], bad: str
) -> None:
    change, reason = BAD_ENTRIES[bad]

    def sometimes(name: str, entry: Json, turn: int) -> Json:
        return change(entry) if name == "item03" and turn == 1 else entry

    readings, server = read(tmp_path, items, judge(sometimes))
    assert server.calls == SEVERAL + 1
    assert not any(reading.is_missing for reading in readings)
    last = max(server.requests(), key=lambda request: len(request["messages"]))
    assert [message["role"] for message in last["messages"]] == ["user", "assistant", "user"]
    assert f"item03: {reason}" in last["messages"][2]["content"]


def test_after_two_repeats_the_scores_are_missing(tmp_path: Path, items: list[PanelItem]) -> None:
    def never(name: str, entry: Json, _turn: int) -> Json:
        return {**entry, "R": 9} if name == "item02" else entry

    readings, server = read(tmp_path, items, judge(never))
    assert server.calls == SEVERAL + 2
    assert [reading.item for reading in readings if reading.is_missing] == ["item02"]
    assert readings[1].comment.startswith("no valid reply: item02: R must be an integer from 1 to 7")


BAD_REPLIES = {
    "prose": (says("A fine set of items."), "is not exactly one JSON object"),
    "a list": (says("[1, 2]"), "is not a JSON object"),
    "no list": (says('{"items": 3}'), 'an object with a list "items"'),
    "cut off": (completion({"content": '{"items": ['}, "length"), "cut off by the length limit"),
    "empty": (completion({"content": ""}), "was empty"),
    "twice": (says('{"items": [{"item": "item01"}, {"item": "item01"}]}'), "an item has two entries"),
    "refused": (REFUSALS["finish content_filter"], "was withheld"),
}


@pytest.mark.parametrize("bad", BAD_REPLIES)
def test_a_bad_reply_is_asked_for_again(tmp_path: Path, items: list[PanelItem], bad: str) -> None:
    answer, reason = BAD_REPLIES[bad]
    readings, server = read(
        tmp_path, items[:1], lambda request, number: answer if number == 1 else judge()(request, number)
    )
    assert not readings[0].is_missing
    assert reason in server.requests()[1]["messages"][2]["content"]
    gone, server = read(tmp_path, items[:1], lambda _request, _number: answer, round=2)
    assert (gone[0].is_missing, server.calls) == (True, 3)
    assert reason in gone[0].comment


def test_pressure_is_null_without_messages(tmp_path: Path, items: list[PanelItem]) -> None:
    text = items[0].text.partition("LATER MESSAGE 1\n")[0]
    silent = PanelItem("item01", DRAWN, "a", "b", "", "", text)

    def scores_pressure(_name: str, entry: Json, turn: int) -> Json:
        return {**entry, "P": 3} if turn == 1 else entry

    (reading,), server = read(tmp_path, [silent], judge(scores_pressure))
    assert reading.scores["P"] is None
    assert "P must be left out" in server.requests()[1]["messages"][2]["content"]


def test_no_reply_is_paid_for_twice(tmp_path: Path, items: list[PanelItem]) -> None:
    first, server = read(tmp_path, items, judge())
    again, silent = read(tmp_path, items, judge())
    assert (again, silent.calls) == (first, 0)
    # Another round, another reader or another text is another reading.
    assert read(tmp_path, items, judge(), round=2)[1].calls == SEVERAL
    assert read(tmp_path, items, judge(), index=2)[1].calls == SEVERAL
    changed = [
        PanelItem(i.name, i.source, i.scenario, i.place, i.dimension, i.storyline, i.text + ".")
        for i in items[:1]
    ]
    assert read(tmp_path, [*changed, *items[1:]], judge())[1].calls == 1
    assert server.calls == SEVERAL


def test_what_got_no_reply_is_sent_by_the_next_call(tmp_path: Path, items: list[PanelItem]) -> None:
    def fails(request: Json, number: int) -> Answer:
        return MAY_PASS["500"] if "item04" in shown(request) else judge()(request, number)

    found, _ = asked(tmp_path, items, fails, retries=0)
    assert (found.failures, found.last_failure[:13]) == (1, "judge-1 (m): ")
    readings, server = read(tmp_path, items, judge())
    assert (server.calls, list(shown(server.requests()[0]))) == (1, ["item04"])
    assert not any(reading.is_missing for reading in readings)


@pytest.mark.parametrize("why", ["401", "404", "402"])
def test_an_endpoint_that_cannot_answer_stops_the_reading(
    tmp_path: Path, items: list[PanelItem], why: str
) -> None:
    def stops(request: Json, number: int) -> Answer:
        return judge()(request, number) if number <= 2 else STOPS_RUN[why]

    found, _ = asked(tmp_path, items, stops, concurrency=1)
    assert found.stop.cause in (StopCause.BAD_INPUT, StopCause.PROVIDER)
    assert read(tmp_path, items, judge())[1].calls == SEVERAL - 2


def test_a_repeat_is_resumed_where_it_stopped(tmp_path: Path, items: list[PanelItem]) -> None:
    def stops(_request: Json, number: int) -> Answer:
        return says("not JSON") if number == 1 else STOPS_RUN["401"]

    read(tmp_path, items[:1], stops)
    (reading,), server = read(tmp_path, items[:1], judge())
    (request,) = server.requests()
    assert [message["content"] for message in request["messages"]][1] == "not JSON"
    assert not reading.is_missing


def test_a_file_that_is_not_a_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("hello, this is a text file and not a database at all")
    with pytest.raises(BadData, match="cannot be used as the journal of replies"):
        ReplyJournal(tmp_path / "journal.db")
