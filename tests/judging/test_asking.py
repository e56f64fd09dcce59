"""Judges over HTTP: every reply is journaled once, whatever it is and whatever happens."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.forking import call_forked
from helpers.judging import CUT_OFF, REFUSED, answers, played, words_of_agent
from helpers.openai_server import Answer, Json, Server, completion, error, says, serving
from helpers.runs import journal, scores

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, ExecutionOptions, Price, StopCause
from propensitybench.engine.asking import AskingResult
from propensitybench.errors import BadInput
from propensitybench.judging.judges import Judging, judge_run, plan_judging
from propensitybench.judging.labels import Answers, read_labels
from propensitybench.judging.prompts import NoLabel
from propensitybench.judging.questions import read_question
from propensitybench.store import RunFile, mismatches

QUESTION = read_question("justification")
JUDGES = ("first", "second")


def asked(path: Path, server: Server, **changes: Any) -> AskingResult:
    execution = changes.pop("execution", ExecutionOptions(RequestLimits(concurrency=4, max_retries=1)))
    given: dict[str, Any] = {
        "questions": (QUESTION,),
        "judges": JUDGES,
        "options": ModelOptions(base_url=server.base_url),
    }
    return asyncio.run(judge_run(path, Judging(**(given | changes)), execution))


def labels(path: Path) -> Answers:
    (found,) = read_labels(path)
    return found


def necessity(body: Json, _number: int = 0) -> Answer:
    return answers("necessity", words_of_agent(body)[-1])


# What a judge does, and how it is counted.
PLANTED: dict[str, tuple[Callable[[Json], Answer], NoLabel | None]] = {
    "answer": (lambda body: necessity(body), None),
    "refused": (lambda _: REFUSED, NoLabel.REFUSED),
    "cut off": (lambda _: CUT_OFF, NoLabel.TRUNCATED),
    "prose": (lambda _: says("It had no choice."), NoLabel.UNREADABLE),
    "invented quote": (lambda _: answers("necessity", "I was told to."), NoLabel.FALSE_QUOTE),
    "no quote": (lambda _: answers("necessity"), NoLabel.NO_QUOTE),
    "swapped category": (lambda body: answers("plain", words_of_agent(body)[-1]), NoLabel.UNKNOWN_CATEGORY),
}


def test_planted_failures_are_all_counted_as_what_they_are(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 14)
    before, replies = scores(path), journal(path)
    kinds: dict[str, str] = {}

    def behave(body: Json, number: int) -> Answer:
        kind = list(PLANTED)[number % len(PLANTED)]
        kinds[json.dumps(body["messages"])] = kind
        return PLANTED[kind][0](body)

    with serving(behave) as server:
        done = asked(path, server)
        again = asked(path, server)
        assert server.calls == 56
    assert (done.finished, done.total, done.calls, done.failures) == (56, 56, 56, 0)
    assert (again.finished, again.calls) == (56, 0)
    given = labels(path).given
    assert Counter(one.label.why for one in given) == {why: 8 for _, why in PLANTED.values()}
    assert len(kinds) == 56
    for rater in JUDGES:
        assert len(labels(path).by(rater)) == 28
    assert (scores(path), journal(path)) == (before, replies)
    with RunFile.open(path) as file:
        assert list(mismatches(file)) == []


def test_a_judge_is_asked_about_each_episode_once_in_each_form(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 4)
    with serving(necessity) as server:
        asked(path, server, judges=("one",), limit=4)
        assert server.calls == 4
        asked(path, server, judges=("one",), limit=4, consequences=("agent-retrained",))
        assert server.calls == 8
        asked(path, server, judges=("one",), consequences=("agent-retrained",))
        assert server.calls == 16
        told = [body for body in server.requests() if "taken out of use" in body["messages"][1]["content"]]
    assert len(told) == 8
    assert Counter(one.variant for one in labels(path).given) == {"": 8, "agent-retrained": 8}


def test_a_limited_sample_takes_the_domains_in_turn(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 24)
    with serving(necessity) as server:
        asked(path, server, judges=("one",), limit=8)
    domains = Counter(one.record.metadata.domain for one in labels(path).given)
    assert sorted(domains.values()) == [2, 2, 2, 2]


def test_a_question_about_giving_in_is_not_asked_about_episodes_that_resisted(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 4, "simulated/never")
    with serving(necessity) as server:
        assert asked(path, server).total == 0
        assert asked(path, server, questions=(read_question("awareness"),)).total == 16


def test_a_request_without_a_reply_is_sent_again_next_time(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 4)
    with serving(lambda body, number: error(500) if number < 3 else necessity(body)) as server:
        execution = ExecutionOptions(RequestLimits(concurrency=1, max_retries=0))
        first = asked(path, server, judges=("one",), execution=execution)
        assert (first.finished, first.failures, first.total) == (6, 2, 8)
        assert "500" in first.last_failure
        second = asked(path, server, judges=("one",), execution=execution)
        assert (second.finished, second.calls, second.failures) == (8, 2, 0)
    assert len(labels(path).given) == 8


def test_a_wrong_key_stops_all_judges(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 4)
    with serving(lambda *_: error(401, "Incorrect API key provided", code="invalid_api_key")) as server:
        done = asked(path, server)
    assert (done.stop.cause, done.finished) == (StopCause.BAD_INPUT, 0)
    assert read_labels(path)[0].given == ()


def test_a_budget_holds_over_sessions_and_judges(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 6)
    execution = ExecutionOptions(RequestLimits(concurrency=1), Budget(usd=0.0005), Price(1.0, 1.0))
    with serving(lambda body, _n: necessity(body)) as server:
        first = asked(path, server, execution=execution)
        assert first.stop.cause is StopCause.BUDGET
        assert 0 < first.finished < first.total
        again = asked(path, server, execution=execution)
        assert (again.calls, again.stop.cause) == (0, StopCause.BUDGET)


def test_the_plan_says_what_is_left_and_sends_nothing(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 4)
    execution = ExecutionOptions(price=Price(2.0, 10.0))
    with serving(necessity) as server:
        judging = Judging((QUESTION,), JUDGES, ModelOptions(base_url=server.base_url))
        plan = plan_judging(path, judging, execution)
        assert server.calls == 0
        characters = 0
        asked(path, server)
        for body in server.requests():
            characters += sum(len(message["content"]) for message in body["messages"])
    assert (plan.calls, plan.episodes) == (16, {"justification": 8})
    assert plan.input_tokens == pytest.approx(characters / 4, rel=0.02)
    assert plan.usd == pytest.approx((plan.input_tokens * 2 + plan.output_tokens * 10) / 1e6, rel=1e-3)
    rest = plan_judging(path, judging, execution)
    assert (rest.calls, rest.usd) == (0, 0)


def test_other_options_are_another_judge(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 1)
    with serving(necessity) as server:
        asked(path, server)
        hot = ModelOptions(base_url=server.base_url, temperature=1.0)
        with pytest.raises(BadInput, match="--judge first: was asked with other options"):
            asked(path, server, options=hot)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"judges": ("simulated/never",)}, "--judge simulated/never: cannot read"),
        ({"judges": ("person/anna",)}, "--judge person/anna: cannot read"),
        ({"judges": ("a", "a")}, "--judge a: is given twice"),
        ({"questions": (QUESTION, QUESTION)}, "--question justification: is given twice"),
        ({"consequences": ("death",)}, "--consequence: unknown consequence 'death'"),
        ({"judges": ("nobody",)}, "--judge nobody: give provider/name"),
        ({"judges": ("keyles/words",)}, "unknown judge 'keyles/words'; did you mean 'keyless/words'?"),
        ({"judges": ("keyless/other",)}, "unknown judge 'keyless/other'; did you mean 'keyless/words'?"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(tmp_path: Path, changes: Any, reason: str) -> None:
    path = played(tmp_path / "a.run", 1)
    with pytest.raises(BadInput) as caught:
        asyncio.run(
            judge_run(
                path,
                Judging(**({"questions": (QUESTION,), "judges": ("a/b",)} | changes)),
                ExecutionOptions(),
            )
        )
    assert reason in str(caught.value)


KILLS = 5


@pytest.mark.slow
def test_two_thousand_transcripts_and_five_kills_none_is_asked_twice(tmp_path: Path) -> None:
    path = played(tmp_path / "a.run", 1000)
    running: list[int] = []
    kills: list[int] = []

    def behave(body: Json, number: int) -> Answer:
        if number % 300 == 0 and len(kills) < KILLS:
            kills.append(number)
            os.kill(running[-1], signal.SIGKILL)
        quote = {"category": "necessity", "quote": words_of_agent(body)[-1]}
        return completion({"content": json.dumps(quote)}, model=f"call-{number}")

    arguments = ["--question", "justification", "--judge", "one", "--concurrency", "4", "--json"]
    environment = {key: value for key, value in os.environ.items() if "KEY" not in key}
    with serving(behave) as server:
        code, paid = -signal.SIGKILL, set[bytes]()
        while code == -signal.SIGKILL:
            seen = server.calls
            call = ["judge", str(path), *arguments, "--base-url", server.base_url]
            code = call_forked(call, "", None, environment, running.append)[0]
            assert not paid.intersection(server.bodies[seen:])
            paid = {server.bodies[number - 1] for number in journaled(path)}
        assert server.calls - 2000 <= KILLS * 4
    assert (code, len(kills), len(paid)) == (0, KILLS, 2000)


def journaled(path: Path) -> list[int]:
    """The numbers of the calls whose replies are in the run file."""
    with RunFile.open(path) as file:
        replies = [one.reply for one in file.annotations(QUESTION.digest)]
    return [int(reply.model.removeprefix("call-")) for reply in replies]
