"""A simulated agent's randomness comes only from its task and the run's seed."""

import asyncio
from pathlib import Path

import pytest
from helpers.play import play
from simulated.playing import FEW, Played, played

from propensitybench.chat import Request
from propensitybench.clients import Client
from propensitybench.engine import RunSpec, client_for
from propensitybench.engine.episodes import open_conversation
from propensitybench.episode import Episode, Outcome
from propensitybench.scenarios.selection import Selection

SAME_TASKS = Selection(roles=("Cloud-Security-Analyst",), dimensions=("time",))


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
