"""A simulated agent's randomness comes only from its task and the run's seed."""

import asyncio
from pathlib import Path

import pytest
from helpers.play import play
from simulated.playing import FEW, Played, played

from propensitybench.chat import Message, Reply, Request, ToolSpec
from propensitybench.clients import Client
from propensitybench.engine import RunSpec, client_for
from propensitybench.engine.episodes import open_conversation
from propensitybench.episode import Episode, Outcome
from propensitybench.errors import ModelError
from propensitybench.scenarios.selection import Selection

SAME_TASKS = Selection(workspaces=("Cloud-Platform-with-Autoscaling",), dimensions=("time",))


def play_constant(path: Path, seed: int = 1, concurrency: int = 64) -> Played:
    spec = RunSpec("simulated/constant-0.1", selection=SAME_TASKS, seed=seed)
    return played(spec, path, concurrency=concurrency)


def levels(run: Played) -> dict[str, int | None]:
    """The level at which the agent gave in, by task."""
    return {
        key: record.stats.level if record.stats.outcome is Outcome.MISALIGNED else None
        for key, record in run.records.items()
    }


def test_the_same_seed_gives_the_same_records_and_transcripts(tmp_path: Path) -> None:
    first = play_constant(tmp_path / "first.run")
    second = play_constant(tmp_path / "second.run")
    assert first.records == second.records
    assert first.transcripts == second.transcripts


def test_how_many_play_at_once_does_not_matter(tmp_path: Path) -> None:
    assert play_constant(tmp_path / "one.run", concurrency=1) == play_constant(tmp_path / "many.run")


def test_another_seed_has_the_agent_give_in_elsewhere(tmp_path: Path) -> None:
    first, second = play_constant(tmp_path / "1.run", seed=1), play_constant(tmp_path / "2.run", seed=2)
    assert first.records.keys() == second.records.keys()
    assert levels(first) != levels(second)


def test_tasks_of_one_run_have_chances_of_their_own(tmp_path: Path) -> None:
    assert len(set(levels(play_constant(tmp_path / "a.run")).values())) > 5


def test_what_else_is_played_does_not_change_a_task(tmp_path: Path) -> None:
    few = played(RunSpec("simulated/o4-mini-like", selection=FEW), tmp_path / "few.run")
    more = played(RunSpec("simulated/o4-mini-like", selection=Selection(limit=12)), tmp_path / "more.run")
    assert len(more.records) == 2 * len(few.records)
    assert {key: more.transcripts[key] for key in few.transcripts} == few.transcripts


async def assert_resumes_everywhere(client: Client, episode: Episode) -> int:
    """Asks a fresh conversation beside the old one before every turn; the number of turns."""
    going_on = open_conversation(client, episode.metadata)
    request: Request | None = episode.start()
    turns = 0
    while request is not None:
        resumed = await open_conversation(client, episode.metadata, turns).reply(request)
        reply = await going_on.reply(request)
        assert resumed == reply
        request = episode.receive(reply)
        turns += 1
    return turns


@pytest.mark.parametrize("naming", ["harmful", "benign"])
@pytest.mark.parametrize(
    "name", ["never", "always", "at-level-7", "at-level-12", "quitter", "malformed", "incompetent"]
)
def test_an_agent_resumed_at_any_turn_says_what_it_would_have_said(name: str, naming: str) -> None:
    client = client_for(f"simulated/{name}")
    episode = Episode(play(naming=naming))
    turns = asyncio.run(assert_resumes_everywhere(client, episode))
    assert turns == episode.record().stats.turns > 0


def request_naming(*names: str) -> Request:
    """A first request whose system message names these tools; two of its tools take no argument."""
    system = f'Do not use {" or ".join(names) or "it"}. Your values are:\n{{\n"x": 1\n}}'
    needs = {"complete_it": ["x"], "wipe_it": [], "look_around": []}
    tools = [ToolSpec(name, "", {"type": "object", "required": needs[name]}) for name in needs]
    return Request([Message("system", system), Message("user", "Do it.")], tuple(tools))


def first_reply(*names: str) -> Reply:
    conversation = open_conversation(client_for("simulated/always"), play().metadata)
    return asyncio.run(conversation.reply(request_naming(*names)))


def test_an_agent_knows_the_misaligned_tool_by_its_name_in_the_system_message() -> None:
    (call,) = first_reply("wipe_it").tool_calls
    assert (call.name, call.arguments) == ("complete_it", '{"x":1}')  # it works first


@pytest.mark.parametrize(
    ("names", "found"), [((), "none"), (("complete_it", "wipe_it"), "2"), (("wipe_it", "look_around"), "2")]
)
def test_a_system_message_must_name_one_tool(names: tuple[str, ...], found: str) -> None:
    with pytest.raises(
        ModelError, match=f"found {found} there: use a template that names this tool and no other"
    ):
        first_reply(*names)
