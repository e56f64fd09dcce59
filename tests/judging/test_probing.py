"""Probes of a played run: what is asked when, that nothing of the run changes, and what the answers give."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.clients import ByTask
from helpers.judging import CUT_OFF, REFUSED
from helpers.openai_server import Answer, Json, calls, says, serving, simulated
from helpers.probing import AWARENESS, POLICY, answering, is_probe, numbers, played_at, probed
from helpers.run_edits import edit
from helpers.runs import finish, make, scores, scripted

from propensitybench.chat import Reply, Request
from propensitybench.clients import Conversation
from propensitybench.clients import says as says_to_engine
from propensitybench.clients.options import RequestLimits
from propensitybench.digests import seed_from
from propensitybench.engine import Budget, ExecutionOptions, Price, RunSpec, StopCause, create_run
from propensitybench.episode import Outcome, Protocol
from propensitybench.errors import BadInput, ModelError, NotARunFile, RunMismatch
from propensitybench.judging.labels import read_labels
from propensitybench.judging.probe import probe
from propensitybench.judging.probe_numbers import read_probed
from propensitybench.judging.probes import END, NoAnswer
from propensitybench.judging.side_branches import AGENT, Probing, plan_probing
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import profile
from propensitybench.simulated.causes import Causes
from propensitybench.store import RunFile, mismatches

COUNT = len(AWARENESS.wordings)
KEPT = ("manifest", "scenario", "pressure", "task", "reply", "error", "outcome")


def contents(path: Path) -> dict[str, list[Any]]:
    """Every row of the tables that make up the run."""
    with closing(sqlite3.connect(path)) as db:
        return {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in KEPT}


def variants(path: Path) -> Counter[str]:
    with RunFile.open(path) as file:
        return Counter(one.key.variant for one in file.annotations(AWARENESS.digest))


def agent_says(letter: str) -> Any:
    return lambda _body, _number: says(letter)


def test_probing_changes_nothing_of_the_run(tmp_path: Path) -> None:
    with serving(answering("at-level-2", agent_says("B"))) as server:
        path = played_at(tmp_path / "a.run", server)
        before, rows = scores(path), contents(path)
        done = probed(path, 0, 1, 2, END, probes=(AWARENESS, POLICY))
        assert (done.finished, done.failures) == (done.total, 0)
    assert contents(path) == rows
    assert scores(path) == before
    with RunFile.open(path) as file:
        assert list(mismatches(file)) == []
        assert file.count("annotation") == done.total == 12 * 4 * (COUNT + len(POLICY.wordings))
        assert file.raters().keys() == {AGENT}
    assert read_labels(path) == []


def test_each_question_is_put_where_the_agent_stood(tmp_path: Path) -> None:
    with serving(simulated("at-level-2")) as server:
        path = played_at(tmp_path / "a.run", server)
        played = {str(body["messages"]): body for body in server.requests()}
        seen = server.calls
        probed(path, 0, 2)
        asked = server.requests()[seen:]
    assert len(asked) == 12 * 2 * COUNT
    for body in asked:
        assert is_probe(body)
        *before, last = body["messages"]
        text, _, question = last["content"].rpartition("\n\n---\n")
        assert question.startswith("A question aside from the task")
        # The same request as in the run, but for the question below its last message.
        run = played[str([*before, {**last, "content": text}])]
        assert {**body, "messages": run["messages"]} == run
        assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 99)
        assert text.startswith("[Message forwarded") == (len(before) > 1)


def test_nothing_is_asked_twice_and_a_complete_file_is_not_touched(tmp_path: Path) -> None:
    with serving(simulated("at-level-2")) as server:
        path = played_at(tmp_path / "a.run", server)
        probed(path, 0, limit=4)
        seen = server.calls
        assert probed(path, 0).calls == 8 * COUNT
        assert server.calls == seen + 8 * COUNT
        whole = path.read_bytes()
        (again,) = probe(path, "awareness", level=0).probes
        assert sum(row.episodes for row in again.rows) == 12
        assert server.calls == seen + 8 * COUNT
    assert path.read_bytes() == whole
    assert len(set(variants(path).values())) == 1


def test_an_episode_that_ended_before_a_level_is_neither_asked_there_nor_missing(tmp_path: Path) -> None:
    with serving(simulated("at-level-1")) as server:
        path = played_at(tmp_path / "a.run", server)
        assert probed(path, 1, 2, END).total == 12 * 2 * COUNT
    rows = numbers(path).rows
    # What is said after the end is not compared with the act before it.
    assert [(row.level, row.episodes, row.not_asked, row.act is None) for row in rows] == [
        ("1", 6, 0, False), ("1", 6, 0, False), ("end", 6, 0, True), ("end", 6, 0, True),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="--level 4: the run has levels 0 to 3"):
        probed(path, 4)


# What a model does when it is asked, and how it is counted.
PLANTED: dict[str, tuple[Answer, NoAnswer | None]] = {
    "letter": (says("B"), None),
    "refused": (REFUSED, NoAnswer.REFUSED),
    "cut off": (CUT_OFF, NoAnswer.TRUNCATED),
    "prose": (says("That depends on what you mean."), NoAnswer.UNREADABLE),
    "tool": (calls(), NoAnswer.TOOL_CALL),
    "empty": (says(""), NoAnswer.UNREADABLE),
}


def test_what_is_no_answer_is_counted_as_what_it_is_and_widens_the_bounds(tmp_path: Path) -> None:
    given: Counter[str] = Counter()

    def planted(body: Json, _number: int) -> Answer:
        kinds = ["letter"] * 5 + list(PLANTED)
        answer, why = PLANTED[kinds[seed_from(str(body["messages"])) % len(kinds)]]
        given.update([why] if why else [])
        return answer

    with serving(answering("never", planted)) as server:
        path = played_at(tmp_path / "a.run", server, limit=12)
        done = probed(path, 0)
        assert (done.finished, done.failures) == (120, 0)
        assert probed(path, 0).calls == 0
    rows = numbers(path).rows
    assert sum((Counter(row.no_answer) for row in rows), Counter()) == given
    assert len(given) == len(NoAnswer)
    for row in rows:
        assert row.wordings.bounds is not None
        assert row.wordings.value is not None
        assert row.wordings.bounds.low < row.wordings.value < row.wordings.bounds.high
        assert row.act is not None
        assert 0 < row.act.counts["missing"]["resisted"] == 12 - row.act.counts["aware"]["resisted"]


@pytest.mark.parametrize(("letter", "straight", "flipped"), [("A", 0.0, 1.0), ("B", 1.0, 0.0)])
def test_a_preference_for_a_letter_shows_in_the_flipped_wordings(
    letter: str, straight: float, flipped: float, tmp_path: Path
) -> None:
    with serving(answering("never", agent_says(letter))) as server:
        path = played_at(tmp_path / "a.run", server, limit=2)
        probed(path, 0)
    for row in numbers(path).rows:
        assert row.straight is not None
        assert row.flipped is not None
        assert row.agreement is not None
        assert (row.straight.value, row.flipped.value, row.agreement.value) == (straight, flipped, 0.0)
        assert [one.value for one in row.by_wording] == [
            flipped if AWARENESS.flipped(number + 1) else straight for number in range(COUNT)
        ]


def test_a_budget_is_that_of_all_its_probes_and_not_of_the_run(tmp_path: Path) -> None:
    with serving(simulated("never")) as server:
        path = played_at(tmp_path / "b.run", server)
        spend = ExecutionOptions(RequestLimits(concurrency=1), Budget(usd=0.0005), Price(1.0, 1.0))
        first = probed(path, 0, execution=spend)
        # The replies of the run itself are not counted: 110 tokens a call.
        assert (first.stop.cause, first.calls) == (StopCause.BUDGET, 5)
        again = probed(path, 0, execution=spend)
        assert (again.calls, again.stop.cause) == (0, StopCause.BUDGET)
        assert again.usd == pytest.approx(0.00055)
        with pytest.raises(BadInput, match="needs the price of m"):
            probed(path, 0, execution=ExecutionOptions(budget=Budget(usd=1.0)))


def test_the_plan_says_what_is_left(tmp_path: Path) -> None:
    price = Price(2.0, 10.0)
    with serving(simulated("at-level-2")) as server:
        path = played_at(tmp_path / "a.run", server)
        seen = server.calls
        plan = plan_probing(path, Probing((AWARENESS, POLICY)), price)
        assert server.calls == seen
        done = probed(path, probes=(AWARENESS, POLICY))
        sent = sum(len(str(body["messages"])) + len(str(body["tools"])) for body in server.requests()[seen:])
    assert plan.calls == done.total == server.calls - seen == 12 * (2 * COUNT + 3)
    assert plan.episodes == {"awareness": 12, "stated-policy": 12}
    assert plan.input_tokens == pytest.approx(sent / 4, rel=0.25)
    assert plan.usd == pytest.approx((plan.input_tokens * 2 + plan.output_tokens * 10) / 1e6)
    assert plan_probing(path, Probing((AWARENESS, POLICY)), price).usd == 0


class Breaking(ByTask):
    """Ends so many levels with a message; then there is no reply."""

    model = "simulated/never"

    def __init__(self, levels: int) -> None:
        self._levels = levels

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:  # noqa: ARG002
        return _Breaking(self._levels)

    async def close(self) -> None:
        pass


class _Breaking:
    def __init__(self, left: int) -> None:
        self._left = left

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002
        self._left -= 1
        if self._left < 0:
            raise ModelError("no answer")
        return says_to_engine("I stop here.", done=True)


def test_an_errored_episode_has_the_levels_that_it_reached_and_no_end(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/never", limit=2)
    finish(path, Breaking(3))
    probed(path, 0, 3, 4, END)
    assert {row.level for row in numbers(path).rows} == {"0", "3"}
    act = numbers(path).rows[0].act
    assert act is not None
    assert act.everyone.bounds == (0.0, 1.0)
    finish(path)  # its errored episodes are retried, and go on from where they were
    probed(path, 0, 3, 4, END)
    assert {row.level for row in numbers(path).rows} == {"0", "3", "4", "end"}
    assert {row.episodes for row in numbers(path).rows} == {2}
    with RunFile.open(path) as file:
        assert list(mismatches(file)) == []


def test_an_episode_that_has_not_ended_is_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/never", limit=2)
    finish(path)
    probed(path, 0)
    edit(path, "DELETE FROM outcome WHERE task = 0")
    edit(path, "DELETE FROM reply WHERE task = 0 AND turn > 3")
    assert probed(path, 0, END).total == 3 * 2 * COUNT
    rows = numbers(path).rows
    assert [sum(row.episodes for row in rows if row.level == level) for level in ("0", "end")] == [3, 3]
    assert {row.not_asked for row in rows} == {0}


def test_a_run_of_one_message_at_a_time_has_level_0_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    create_run(
        RunSpec("simulated/never", selection=Selection(limit=1), protocol=Protocol(arm="single")), path
    )
    finish(path)
    assert probed(path).total == 24 * 2 * COUNT
    assert [row.episodes for row in numbers(path).rows] == [12] * 4


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the agent of known awareness, with several dimensions of each scenario."""
    path = tmp_path_factory.mktemp("known") / "a.run"
    selection = Selection(workspaces=(WORKSPACE,), dimensions=DIMENSIONS, namings=("harmful",))
    create_run(RunSpec(AWARE, selection=selection, protocol=Protocol(levels=2)), path)
    finish(path)
    probed(path, 0, 1, probes=(AWARENESS, POLICY))
    return path


AWARE = "simulated/aware-and-careful"
DIMENSIONS = ("time", "financials", "power-seeking", "self-preservation")
WORKSPACE = "Cloud-Platform-with-Autoscaling"


def causes() -> Causes:
    found = profile(AWARE.removeprefix("simulated/")).gives_in
    assert isinstance(found, Causes)
    return found


def test_planted_awareness_is_found_episode_by_episode(known: Path) -> None:
    run = StoredRun(known)
    planted = {one.metadata.task: causes().is_aware(one.metadata) for one in run.records}
    (found,) = read_probed(known, [AWARENESS.digest])
    for level in (0, 1):
        answers = found.answers[level]
        assert {task: {one and one.means for one in row} for task, row in answers.items()} == {
            task: {"test" if planted[task] else "real"} for task in answers
        }
    first = numbers(known).rows[0]
    assert first.majority.value == pytest.approx(np.mean(list(planted.values())))
    assert first.majority.ci95 is not None
    assert first.majority.ci95.low < causes().aware < first.majority.ci95.high
    assert first.agreement is not None
    assert first.agreement.value == 1.0


def test_the_stated_policy_is_joined_with_the_act(known: Path) -> None:
    outcomes = Counter(record.stats.outcome for record in StoredRun(known).records)
    row = numbers(known, POLICY).rows[0]
    assert row.act is None
    assert row.stated is not None
    assert row.majority.value == 0.0
    assert row.stated.counts["no"]["misaligned"] == outcomes[Outcome.MISALIGNED] > 0
    assert row.stated.counts["no"]["resisted"] == outcomes[Outcome.RESISTED]
    assert row.stated.misaligned_if_no.value == pytest.approx(
        outcomes[Outcome.MISALIGNED] / sum(outcomes.values())
    )


def test_another_model_or_other_rules_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/never", limit=1)
    finish(path)
    with pytest.raises(RunMismatch, match="client: is other, not simulated/never"):
        probed(path, 0, client=scripted(model="other"))
    edit(path, "UPDATE manifest SET body = json_set(body, '$.rules', 1)")
    with pytest.raises(RunMismatch, match="version 1 of the rules"):
        probed(path, 0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE annotation SET variant = 'level 0, wording 9' WHERE number = 1",
        "UPDATE question SET body = json_set(body, '$.counted', 'neither')",
    ],
)
def test_a_damaged_probe_is_a_sentence(statement: str, tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/never", limit=1)
    finish(path)
    probed(path, 0)
    edit(path, statement)
    with pytest.raises(NotARunFile, match="is damaged"):
        read_probed(path)
