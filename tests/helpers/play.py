"""Episodes of a scenario for tests, played by hand or with generated replies."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from propensitybench.chat import Reply, Request, StopReason, ToolCall, Usage
from propensitybench.clients import calls, says
from propensitybench.episode import (
    PAPER,
    Episode,
    EpisodeSettings,
    EpisodeSetup,
    Protocol,
    episode_setup,
)
from propensitybench.pressure import pressure_chain
from propensitybench.scenarios import Scenario, Task, read_dataset

DATA = Path(__file__).resolve().parents[1] / "episode" / "data"
SCENARIO = "harvest_weekend_headroom"


@cache
def scenario(name: str = SCENARIO) -> Scenario:
    """A scenario of tests/episode/data, whose arguments are of every kind."""
    return read_dataset(DATA).scenario(name)


@cache
def play(protocol: Protocol = PAPER, naming: str = "harmful") -> EpisodeSetup:
    """The setup of an episode of the scenario under time pressure."""
    one = scenario()
    task = Task(one.name, "time", "benign" if naming == "benign" else "harmful", 1)
    chain = pressure_chain(one, "time", read_dataset(DATA).storylines, 0)
    return episode_setup(task, one, EpisodeSettings(protocol=protocol), chain)


def right_call(tool: str) -> Reply:
    """A call of a tool of the scenario with the right arguments."""
    one = scenario()
    names = {getter.name: getter.arguments for getter in one.getters}
    names[one.aligned.name] = one.aligned.arguments
    return calls(tool, **{name: one.values[name] for name in names[tool]})


def feed(episode: Episode, *replies: Reply) -> Request | None:
    """Starts an episode and gives it replies; returns its last request."""
    request: Request | None = episode.start()
    for reply in replies:
        request = episode.receive(reply)
    return request


def last_text(episode: Episode) -> str:
    """The last message of the conversation."""
    return episode.messages[-1].content


def run_through(episode: Episode, reply: Reply) -> None:
    """Gives the same reply until the episode is over."""
    request: Request | None = episode.start()
    while request is not None:
        request = episode.receive(reply)


def blocked() -> Reply:
    """A reply that the provider filtered out."""
    return Reply(stop=StopReason.CONTENT_FILTER)


def _tool_names() -> st.SearchStrategy[str]:
    one = scenario()
    return st.one_of(st.sampled_from(one.tool_names()[:-1]), st.text(max_size=12))


def _arguments() -> st.SearchStrategy[str]:
    values = st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(st.just(value), st.text(max_size=5), st.integers())
            for name, value in scenario().values.items()
        },
    ).map(json.dumps)
    return st.one_of(values, st.text(max_size=20), st.just(""), st.just("[]"), st.just("[" * 5000))


def _right_calls() -> st.SearchStrategy[Reply]:
    one = scenario()
    return st.sampled_from([*(getter.name for getter in one.getters), one.aligned.name]).map(right_call)


def _called() -> st.SearchStrategy[Reply]:
    one_call = st.builds(ToolCall, st.text(max_size=4), _tool_names(), _arguments())
    return st.builds(
        lambda made, content: Reply(content, tuple(made), StopReason.TOOL_CALLS),
        st.lists(one_call, min_size=1, max_size=3),
        st.text(max_size=10),
    )


def _messages() -> st.SearchStrategy[Reply]:
    loose = st.dictionaries(
        st.sampled_from(["thoughts", "message", "interaction_status", "more"]),
        st.one_of(st.sampled_from(["continue", "terminate"]), st.integers()),
    ).map(lambda body: Reply(json.dumps(body)))
    return st.one_of(
        st.builds(says, st.text(max_size=20), done=st.booleans()),
        st.builds(Reply, st.text(max_size=60)),
        loose,
    )


def cut_off(reply: Reply) -> Reply:
    """The reply, ended by the length limit."""
    return msgspec.structs.replace(reply, stop=StopReason.LENGTH)


def replies() -> st.SearchStrategy[Reply]:
    """Any reply: valid and broken calls, messages, prose, empty, refused and truncated ones."""
    complete = st.one_of(_right_calls(), _called(), _messages())
    return st.one_of(
        complete,
        complete.map(cut_off),
        st.builds(Reply, st.just(""), st.just(()), st.sampled_from(StopReason)),
        st.builds(Reply, usage=st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
    )


def histories(max_size: int = 200) -> st.SearchStrategy[list[Reply]]:
    """Sequences of replies."""
    return st.lists(replies(), max_size=max_size)


def names_misaligned(reply: Reply) -> bool:
    """Whether any call of a reply is of the misaligned tool."""
    return any(call.name == scenario().misaligned.harmful.name for call in reply.tool_calls)


def played(history: list[Reply], **changes: Any) -> Episode:
    """An episode that was given a history, up to the end of one of the two."""
    episode = Episode(play(Protocol(**changes)))
    request: Request | None = episode.start()
    for reply in history:
        if request is None:
            break
        request = episode.receive(reply)
    return episode


def played_out(history: list[Reply], **changes: Any) -> Episode:
    """An episode that was given a history and then, if it was not over, terminations until the end."""
    return played([*history, *[says("no", done=True)] * (PAPER.levels + 1)], **changes)
