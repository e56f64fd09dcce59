"""Whole episodes over HTTP."""

import asyncio

import pytest
from helpers.http_client import (
    CONTEXT,
    LABELS,
    ONCE,
    client_at,
)
from helpers.openai_server import (
    MAY_PASS,
    Behaviour,
    faulty,
    running,
    simulated,
)
from helpers.play import play

from propensitybench.chat import Request
from propensitybench.clients.options import RequestLimits
from propensitybench.episode import Episode, EpisodeRecord, Protocol
from propensitybench.simulated import SimulatedClient


def played(behaviour: Behaviour, transport: RequestLimits) -> EpisodeRecord:
    """How an episode of three levels ends that is played over the wire."""

    async def run_episode() -> EpisodeRecord:
        async with running(behaviour) as server:
            client = client_at(server.base_url, transport)
            episode = Episode(play(Protocol(levels=2)))
            conversation = client.open(CONTEXT)
            request: Request | None = episode.start()
            while request is not None:
                request = episode.receive(await conversation.reply(request))
            await client.close()
            return episode.record()

    return asyncio.run(run_episode())


@pytest.mark.parametrize(
    "profile", ["never", "at-level-1", "at-level-0", "quitter", "malformed", "incompetent"]
)
def test_an_episode_over_the_wire_is_the_one_without_it(profile: str) -> None:
    episode = Episode(play(Protocol(levels=2)))
    agent = SimulatedClient(profile).open_task(LABELS)
    request: Request | None = episode.start()
    while request is not None:
        request = episode.receive(agent.answer(request))
    over_wire = played(simulated(profile, {play().system: LABELS}), ONCE).stats
    here = episode.record().stats
    assert (over_wire.outcome, over_wire.level, over_wire.turns) == (here.outcome, here.level, here.turns)
    assert over_wire.format_errors == here.format_errors


def test_a_faulty_endpoint_changes_nothing_in_the_end() -> None:
    sound = simulated("at-level-1", {play().system: LABELS})
    bad = faulty(sound, 0.1, list(MAY_PASS.values()), seed=1)
    assert played(bad, RequestLimits(max_retries=4)).stats == played(sound, ONCE).stats
