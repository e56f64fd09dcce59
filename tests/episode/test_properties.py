"""Properties of every episode, whatever the replies."""

from itertools import pairwise

import msgspec
import pytest
from helpers.play import histories, play, played, scenario
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Reply
from propensitybench.episode import PAPER, Episode, Event, Outcome, State
from propensitybench.errors import IllegalStep
from propensitybench.store import encode_reply

ANY = histories()


@given(ANY)
def test_levels_never_fall_and_rise_one_at_a_time(history: list[Reply]) -> None:
    levels = [0, *(turn.level for turn in played(history).turns)]
    assert all(after - before in (0, 1) for before, after in pairwise(levels))


@given(ANY)
def test_no_level_has_more_than_twelve_turns_and_there_are_thirteen_levels(history: list[Reply]) -> None:
    turns = played(history).turns
    assert all(turn.turn <= PAPER.turns_per_level for turn in turns)
    assert all(turn.level <= PAPER.levels for turn in turns)


@given(ANY)
def test_any_reply_is_accepted_until_the_episode_is_over_and_none_after_it(history: list[Reply]) -> None:
    episode = played(history)
    if episode.state is State.OVER:
        before = episode.fingerprint(), list(episode.turns)
        with pytest.raises(IllegalStep, match="reply in state OVER"):
            episode.receive(Reply("more"))
        assert (episode.fingerprint(), list(episode.turns)) == before


@given(ANY)
def test_a_misaligned_call_ends_the_episode_at_once(history: list[Reply]) -> None:
    episode = played(history)
    events = [turn.event for turn in episode.turns]
    assert Event.MISALIGNED_CALLED not in events[:-1]
    if events and events[-1] is Event.MISALIGNED_CALLED:
        assert episode.record().stats.outcome is Outcome.MISALIGNED
        assert episode.record().stats.level == episode.turns[-1].level


@given(ANY)
def test_the_same_replies_give_the_same_bytes_also_after_storing_them(
    history: list[Reply],
) -> None:
    first = played(history)
    journaled = [msgspec.json.decode(encode_reply(reply), type=Reply) for reply in history]
    second = played(journaled)
    assert first.fingerprint() == second.fingerprint()
    assert first.turns == second.turns


@given(ANY)
def test_no_value_is_revealed_before_a_getter_returned_it(history: list[Reply]) -> None:
    episode = played(history)
    hidden = {name: value for name, value in scenario().unknown.items() if isinstance(value, str)}
    revealed: set[str] = set()
    answers = iter(episode.messages)
    outputs = {getter.name: getter.outputs for getter in scenario().getters}
    by_first = {turn.first: turn for turn in episode.turns}
    for index, message in enumerate(answers):
        turn = by_first.get(index)
        if turn is not None and turn.event is Event.GETTER_CALLED:
            revealed.update(outputs[turn.tool])
        if message.role in ("tool", "user"):
            for name in hidden.keys() - revealed:
                assert str(hidden[name]) not in message.content


@given(ANY)
def test_a_withdrawn_tool_is_not_offered_again_in_its_level_and_is_in_the_next(history: list[Reply]) -> None:
    episode = Episode(play())
    request = episode.start()
    withdrawn: set[str] = set()
    level = 0
    for reply in history:
        after = episode.receive(reply)
        if after is None:
            return
        if episode.level != level:
            withdrawn, level = set(), episode.level
        elif episode.turns[-1].event is Event.WITHDRAWN_TOOL_CALLED:
            withdrawn.add(episode.turns[-1].tool)
        offered = {tool.name for tool in after.tools}
        assert offered == {tool.name for tool in request.tools} - withdrawn or level > 0
        assert not offered & withdrawn
        if not withdrawn:
            assert len(offered) == len(scenario().getters) + 2


@given(ANY)
def test_every_tool_call_in_the_conversation_is_answered_in_order(history: list[Reply]) -> None:
    episode = played(history)
    waiting: list[str] = []
    for message in episode.messages:
        if message.role == "tool":
            assert waiting.pop(0) == message.tool_call_id
        else:
            assert not waiting
            waiting = [call.id for call in message.tool_calls]
    assert not waiting or episode.state is State.OVER


@given(ANY)
def test_counts_agree_with_the_transcript(history: list[Reply]) -> None:
    episode = played(history)
    stats = episode.record("cut off").stats
    events = [turn.event for turn in episode.turns]
    assert stats.turns == len(events)
    assert stats.terminations == events.count(Event.TERMINATED)
    assert stats.aligned_calls_right == events.count(Event.ALIGNED_CALLED) <= stats.aligned_calls
    assert stats.usage.input == sum(reply.usage.input for reply in history[: len(events)])
    if episode.state is not State.OVER:
        assert stats.outcome is Outcome.ERRORED


@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 4))
def test_the_numbers_of_the_protocol_are_the_limits(levels: int, turns: int, messages: int) -> None:
    history = [Reply("prose") for _ in range(200)]
    episode = played(history, levels=levels, turns_per_level=turns, messages_in_a_row=messages)
    assert episode.state is State.OVER
    assert len(episode.turns) == (levels + 1) * min(turns, messages)
