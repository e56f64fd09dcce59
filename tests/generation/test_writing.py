"""Writing over HTTP: bad replies, texts that break a rule, judges, kills, budgets."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.generation import assignment, canned, changed, rounds, scenario_files, small_plan
from helpers.openai_server import REFUSALS, Answer, Json, Server, completion, error, says, serving
from helpers.program import argv

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Price, StopCause
from propensitybench.errors import BadInput
from propensitybench.generation.run import Models, WritingResult, write
from propensitybench.generation.workfolder import WorkFolder

NAME = "the-writer"


def written(work: WorkFolder, server: Server, *, again: bool = False, **changes: Any) -> WritingResult:
    models = Models(
        NAME,
        options=ModelOptions(base_url=server.base_url),
        transport=RequestLimits(concurrency=4, max_retries=1),
    )
    return asyncio.run(write(WorkFolder(work.root), models._replace(**changes), again=again))


BAD = {
    "prose": says("Here is the organisation you asked for. It is a port."),
    "two objects": says('{"a": 1} {"b": 2}'),
    "half": says('{"name": "Alder'),
    "list": says("[1, 2]"),
    "same key twice": says('{"name": "a", "name": "b"}'),
    "not a number": says('{"name": NaN}'),
    "surrogate": says('{"name": "\\ud800"}'),
    "deep": says('{"a":' * 5000),
    "words around the fence": says('Sure:\n```json\n{"name": "a"}\n```\nDone.'),
    "empty": says(""),
    "blank": says("  \n "),
    "truncated": completion({"content": '{"name": "Ald'}, "length"),
    "other fields": says('{"title": "x"}'),
    **{f"refused: {name}": refusal for name, refusal in REFUSALS.items() if refusal.status == 200},
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_reply_goes_back_to_the_writer_with_the_reason(kind: str, tmp_path: Path) -> None:
    work = small_plan(tmp_path, 2, neutral=1)

    def behave(body: Json, _number: int) -> Answer:
        return canned(body) if rounds(body) else BAD[kind]

    with serving(behave) as server:
        done = written(work, server)
    assert (done.written, done.aside) == (3, 0)
    corrections = [body for body in server.requests() if rounds(body)]
    assert len(corrections) == 5  # organisation, sketches, two scenarios, a storyline
    for body in corrections:
        assert body["messages"][2]["role"] == "assistant"
        assert body["messages"][2]["content"].strip()
        assert "cannot be used yet" in body["messages"][3]["content"]
    expected = {"truncated": "truncated", "empty": "empty", "blank": "empty", "other fields": None}
    failure = "refused" if kind.startswith("refused") else expected.get(kind, "malformed")
    if kind == "refused: empty choices":
        return  # the client counts it as an empty or a withheld reply
    assert done.unusable == {**dict.fromkeys(done.unusable, 0), **({failure: 5} if failure else {})}


def test_what_fails_four_times_is_set_aside_and_the_rest_is_written(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 8, time=1)
    good = [True]

    def behave(body: Json, _number: int) -> Answer:
        asked = assignment(body)
        bad = asked["stage"] == "scenario" and asked["row"]["number"] in (2, 5)
        return says("I would rather not.") if bad and good == [True] else canned(body)

    with serving(behave) as server:
        done = written(work, server)
        assert (done.written, done.aside, done.finished, done.total) == (7, 2, 9, 9)
        asides = work.asides()
        assert len(asides) == 2
        for file, aside in asides.items():
            assert file.startswith("units/")
            assert "is not exactly one JSON object" in aside.reasons[0]
        asked = Counter(
            assignment(body)["row"]["number"]
            for body in server.requests()
            if assignment(body)["stage"] == "scenario"
        )
        assert asked == {1: 1, 2: 4, 3: 1, 4: 1, 5: 4, 6: 1, 7: 1, 8: 1}
        calls = server.calls
        assert written(work, server).calls == 0  # what was set aside stays so
        assert server.calls == calls
        good.clear()
        assert written(work, server, again=True).written == 2
        assert server.calls == calls + 2
    assert not work.asides()


def set_in(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(text: Any) -> None:
        for step in path[:-1]:
            text = text[step]
        text[path[-1]] = to

    return change


def added(*path: Any, text: str) -> Callable[[dict[str, Any]], None]:
    def change(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] += text

    return change


BROKEN = {
    "C1 a command as a value": (
        set_in("known", "site_code", to="rm -rf ST-1"),
        "$.known.site_code",
        "rm -rf",
    ),
    "C2 means": (added("description", text=" A payload is sent."), "$.description", "payload"),
    "C2 vulnerability": (added("task", text=" It is CVE-2020-1234."), "$.task", "CVE-2020-1234"),
    "C3 pathogen": (
        added("misaligned", "consequences", text=" Ebola."),
        "$.misaligned.consequences",
        "Ebola",
    ),
    "C3 chemical": (added("states", "illegal", text=" With sarin."), "$.states.illegal", "sarin"),
    "C3 product": (added("policy", "duties", text=" Use Kubernetes."), "$.policy.duties", "Kubernetes"),
    "C3 host": (set_in("known", "site_code", to="st.harbour.com"), "$.known.site_code", "st.harbour.com"),
    "act of another row": (set_in("act", "gain", to="more"), "$.act.gain", "as in the act grid"),
    "severity of another row": (set_in("severity", to=9), "$.severity", "less than or equal to 4"),
    "capability": (set_in("capability", to="ePPP"), "$.capability", "as in the act grid"),
    "name": (set_in("name", to="another_name"), "$.name", "as in the sketch"),
    "tool that is not": (set_in("getters", 0, "arguments", to=["gone"]), "$.getters[0].arguments", "gone"),
    "getters": (lambda text: text["getters"].pop(), "$.getters", "getters"),
    "date": (added("task", text=" By Tuesday."), "$.task", "Tuesday"),
    "safety stop": (set_in("aligned", "errors", 2, to="denied"), "$.aligned.errors[2]", "denied"),
    "telltale face": (
        set_in("misaligned", "benign", "name", to="bypass_review"),
        "$.misaligned.benign.name",
        "bypass",
    ),
    "header field": (set_in("role", to="Author"), "$", "belongs to the unit"),
    "unknown field": (set_in("mood", to="good"), "$.mood", "is not a field"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_text_that_breaks_a_rule_is_set_aside_with_path_and_reason(rule: str, tmp_path: Path) -> None:
    change, path, reason = BROKEN[rule]
    work = small_plan(tmp_path, 3)

    def behave(body: Json, _number: int) -> Answer:
        asked = assignment(body)
        bad = asked["stage"] == "scenario" and asked["row"]["number"] == 2
        return changed(body, change) if bad else canned(body)

    with serving(behave) as server:
        done = written(work, server)
    assert (done.written, done.aside) == (2, 1)
    ((file, aside),) = work.asides().items()
    assert file.startswith(f"units/{work.acts[1].unit}/")
    assert any(found.startswith(f"{path}: ") and reason in found for found in aside.reasons), aside.reasons
    assert aside.text is not None
    again = [body for body in server.requests() if rounds(body)]
    assert len(again) == 3
    assert all(f"{path}: " in body["messages"][3]["content"] for body in again)


def silence(text: Json) -> None:
    for message in text["messages"][:9]:
        message["voices"] = []


KILLS = 5
MESSAGES = {
    "unknown slot": (added("messages", 4, "body", text=" {weather}"), "$.messages[4].body", "weather"),
    "no voice": (silence, "$.messages", "messages voice no component"),
    "names a rule": (added("messages", 8, "body", text=" Bypass it."), "$.messages[8].body", "Bypass"),
    "another dimension": (set_in("dimension", to="financials"), "$.dimension", "must be 'time'"),
    "another domain": (set_in("domains", to=["bio-security"]), "$.domains", "must contain"),
    "eleven messages": (lambda text: text["messages"].pop(), "$.messages", "at least 12 items"),
    "format": (set_in("format", to="mine/1"), "$.format", "propensitybench-storyline/2"),
}


@pytest.mark.parametrize("rule", MESSAGES)
def test_a_storyline_that_breaks_a_rule_is_set_aside(rule: str, tmp_path: Path) -> None:
    change, path, reason = MESSAGES[rule]
    work = small_plan(tmp_path, 2, time=1, neutral=1)

    def behave(body: Json, _number: int) -> Answer:
        return changed(body, change) if assignment(body).get("dimension") == "time" else canned(body)

    with serving(behave) as server:
        done = written(work, server)
    assert (done.written, done.aside) == (3, 1)
    ((file, aside),) = work.asides().items()
    assert file == "storylines/time-1.json"
    assert any(found.startswith(f"{path}: ") and reason in found for found in aside.reasons), aside.reasons


def test_a_judge_sends_a_text_back_and_a_judge_that_cannot_answer_blocks(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 2)
    remark = "the task reads like a list; write it as a note"

    def behave(body: Json, _number: int) -> Answer:
        if body["model"] == NAME:
            return canned(body) if not rounds(body) else changed(body, added("description", text=" Again."))
        shown = body["messages"][0]["content"]
        keep = "Again." in shown
        return says(json.dumps({"keep": keep, "reasons": [] if keep else [remark]}))

    with serving(behave) as server:
        done = written(work, server, judges=("reader",))
        assert (done.written, done.aside) == (2, 0)
    again = [b for b in server.requests() if b["model"] == NAME and rounds(b)]
    assert len(again) == 2
    assert all(remark in body["messages"][3]["content"] for body in again)
    known = WorkFolder(work.root).provenance
    assert {(known[file].judges, known[file].rounds) for file in scenario_files(work)} == {(("reader",), 2)}

    (tmp_path / "b").mkdir()
    other = small_plan(tmp_path / "b", 1)
    with serving(lambda b, _n: canned(b) if b["model"] == NAME else says("Fine with me.")) as server:
        assert written(other, server, judges=("reader",)).aside == 1
    ((_, aside),) = other.asides().items()
    assert "the judge reader gave no verdict" in aside.reasons[0]


def test_readers_words_go_back_to_the_writer_once(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 2)
    with serving(lambda body, _n: canned(body)) as server:
        written(work, server)
        name = Path(scenario_files(work)[0]).stem
        (work.root / "returned.json").write_text(json.dumps({name: ["R 2: who would ask for this?"]}))
        assert written(work, server).written == 1
        assert written(work, server).written == 0
    assert "who would ask for this?" in server.requests()[-1]["messages"][3]["content"]


def test_a_budget_stops_and_the_same_call_resumes(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 3)
    with serving(lambda body, _n: canned(body)) as server:
        first = written(work, server, budget=Budget(tokens=1), price=Price(1, 1))
        assert first.stop.cause is StopCause.BUDGET
        assert (first.calls, first.written) == (1, 0)
        again = written(work, server, budget=Budget(tokens=1))
        assert (again.calls, again.stop.cause) == (0, StopCause.BUDGET)
        assert written(work, server).written == 3
        with pytest.raises(BadInput, match="needs the price of the-writer"):
            written(work, server, budget=Budget(usd=1.0))
    assert server.calls == len(set(server.bodies))


def test_a_wrong_key_stops_and_an_endpoint_that_fails_sets_nothing_right(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 2)
    with serving(lambda _b, _n: error(401, "Incorrect API key provided", code="invalid_api_key")) as server:
        done = written(work, server)
    assert (done.stop.cause, done.written, done.aside) == (StopCause.BAD_INPUT, 0, 0)


def test_a_simulated_agent_writes_nothing(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 1)
    with pytest.raises(BadInput, match="simulated/never: is a simulated agent, which can neither write"):
        asyncio.run(write(work, Models("simulated/never")))


def texts(folder: Path) -> dict[str, bytes]:
    kept = [*folder.glob("units/*/*.json"), *folder.glob("storylines/*.json"), folder / "provenance.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def journaled(folder: Path) -> set[str]:
    database = sqlite3.connect(folder / "journal.db")
    try:
        rows = database.execute("SELECT request FROM reply").fetchall()
    finally:
        database.close()
    return {json.dumps(json.loads(row[0])["messages"]) for row in rows}


@pytest.mark.slow
def test_killed_again_and_again_no_reply_is_paid_for_twice(tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    work, calm = (
        small_plan(tmp_path, 24, time=1, neutral=1),
        small_plan(tmp_path / "calm", 24, time=1, neutral=1),
    )
    running: list[subprocess.Popen[bytes]] = []
    kills: list[int] = []

    def behave(body: Json, number: int) -> Answer:
        if number % 4 == 0 and len(kills) < KILLS:
            kills.append(number)
            os.kill(running[-1].pid, signal.SIGKILL)
        return canned(body)

    with serving(lambda body, _n: canned(body)) as server:
        written(calm, server)
    asked = ["generate", "write", str(work.root), "--model", NAME, "--concurrency", "3"]
    environment = {key: value for key, value in os.environ.items() if "KEY" not in key}
    with serving(behave) as server:
        paid: set[str] = set()
        while True:
            seen = server.calls
            process = subprocess.Popen(argv(*asked, "--base-url", server.base_url), env=environment)
            running.append(process)
            code = process.wait(60)
            fresh = [json.dumps(body["messages"]) for body in server.requests()[seen:]]
            assert not paid.intersection(fresh)
            paid = journaled(work.root)
            if code != -signal.SIGKILL:
                break
    assert (code, len(kills)) == (0, KILLS)
    assert texts(work.root) == texts(calm.root)
