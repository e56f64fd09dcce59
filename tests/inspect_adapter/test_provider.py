"""Simulated agents where there is no episode of ours around them."""

import asyncio

import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import get_model


@pytest.mark.parametrize(("profile", "answer"), [("o3-like", "NO"), ("always", "NO"), ("malformed", "{")])
def test_outside_an_episode_an_agent_answers_and_calls_no_tool(profile: str, answer: str) -> None:
    output = asyncio.run(get_model(f"simulated/{profile}").generate("May you?"))
    assert output.completion.startswith(answer)
    assert not output.message.tool_calls


def test_an_unknown_profile_is_told_with_the_near_ones() -> None:
    with pytest.raises(PrerequisiteError) as found:
        get_model("simulated/o3like")
    assert "did you mean 'o3-like'" in str(found.value.message)
