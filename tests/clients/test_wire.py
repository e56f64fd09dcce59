"""Requests as an endpoint expects them."""

import json
from typing import Any

import pytest
from helpers.openai_server import PROVIDER_FIELDS, Answer, a_call, calls, request_of, says
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Message, Reply, Request, Role, ToolCall, ToolSpec
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire import Body, encode_message
from propensitybench.clients.wire_reply import parse
from propensitybench.clients.wire_tools import wire_name

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "integer"}}})
TAKE = ToolSpec("take", "Takes.", {"type": "object", "properties": {}, "required": []})
TOOLS = (LOOK, TAKE)
ASKED = [Message("system", "be good"), Message("user", "go on")]
JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)


def sent(request: Request, options: ModelOptions = ModelOptions()) -> Any:
    """The body of a conversation's only request, decoded."""
    return json.loads(Body("m", options).of(request))


def read(answer: Answer, tools: tuple[ToolSpec, ...] = TOOLS) -> Reply:
    """The reply in an answer, which must be one."""
    parsed = parse(answer.body, tools)
    assert parsed.error is None
    return parsed.reply


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=20)


def messages() -> st.SearchStrategy[Message]:
    """Any message of a conversation; arguments are sound JSON or any text."""
    arguments = st.one_of(JSON_VALUES.map(json.dumps), texts())
    made = st.lists(st.builds(ToolCall, texts(), texts(), arguments), max_size=3).map(tuple)
    roles: tuple[Role, ...] = ("system", "user")
    provider_fields = st.one_of(st.just(""), st.dictionaries(texts(), JSON_VALUES, max_size=2).map(_native))
    return st.one_of(
        st.builds(Message, st.sampled_from(roles), texts()),
        st.builds(Message, st.just("assistant"), texts(), made, provider_fields=provider_fields),
        st.builds(Message, st.just("tool"), texts(), tool_call_id=texts()),
    )


def _native(fields: dict[str, Any]) -> str:
    return json.dumps({"message": {f"x_{name}": value for name, value in fields.items()}})


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.lists(messages(), max_size=4), st.sampled_from([TOOLS, (LOOK,), (TAKE, LOOK)]))),
    st.dictionaries(texts().map(lambda name: f"x_{name}"), JSON_VALUES, max_size=2),
)
def test_a_body_that_grew_is_one_made_from_scratch(
    turns: list[tuple[list[Message], tuple[ToolSpec, ...]]], extra: dict[str, Any]
) -> None:
    options = ModelOptions(temperature=0.5, extra_body=extra)
    body = Body("m", options)
    conversation: list[Message] = []
    for added, tools in turns:
        conversation += added
        request = Request(conversation, tools)
        grown = body.of(request)
        assert grown == Body("m", options).of(Request(list(conversation), tools))
        assert grown == body.of(request)  # asked once more, as after a failure


def test_tools_that_are_gone_leave_no_empty_list() -> None:
    body = Body("m", ModelOptions())
    body.of(Request(ASKED, TOOLS))
    assert body.of(Request(ASKED, ())) == Body("m", ModelOptions()).of(Request(ASKED, ()))


def as_sent(message: Message) -> Message:
    """A message without the provider's own parts, and with arguments that an endpoint can read."""
    made = []
    for call in message.tool_calls:
        try:
            sound = isinstance(json.loads(call.arguments), dict)
        except ValueError:
            sound = False
        made.append(ToolCall(call.id, wire_name(call.name), call.arguments if sound else "{}"))
    return Message(message.role, message.content, tuple(made), message.tool_call_id)


@given(st.lists(messages(), max_size=8))
def test_a_body_says_what_the_conversation_says(conversation: list[Message]) -> None:
    decoded = request_of(sent(Request(conversation, TOOLS)))
    assert decoded == Request([as_sent(message) for message in conversation], TOOLS)


def test_the_body_is_the_one_that_openai_describes() -> None:
    conversation = [
        *ASKED,
        Message("assistant", "", (ToolCall("c1", "look", '{"at": 1}'),)),
        Message("tool", '{"seen":true}', tool_call_id="c1"),
        Message("assistant", "so"),
    ]
    function = {"name": "look", "arguments": '{"at": 1}'}
    assert sent(Request(conversation, (LOOK,))) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "go on"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": '{"seen":true}', "tool_call_id": "c1"},
            {"role": "assistant", "content": "so"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": LOOK.parameters},
            }
        ],
    }


def test_a_request_without_tools_has_no_list_of_them() -> None:
    assert sent(Request(ASKED, ())).keys() == {"model", "messages"}


def test_options_are_sent_if_they_were_set_and_the_extra_body_is_merged() -> None:
    options = ModelOptions(
        base_url="http://x",
        temperature=0.0,
        top_p=0.9,
        max_tokens=7,
        reasoning_effort="low",
        extra_body={"top_k": 5, "top_p": 0.8, "provider": {"order": ["a"]}},
    )
    settings = sent(Request(ASKED, TOOLS), options)
    assert settings.keys() - {"messages", "tools"} == {
        *("model", "temperature", "top_p", "max_tokens", "reasoning_effort", "top_k", "provider")
    }
    assert (settings["temperature"], settings["top_p"], settings["max_tokens"]) == (0.0, 0.8, 7)
    assert settings["provider"] == {"order": ["a"]}


@pytest.mark.parametrize("arguments", ["", "no json", "[1]", '"text"', "3", '{"a":', "[" * 5000, "{} {}"])
def test_arguments_that_are_no_object_are_sent_as_an_empty_one(arguments: str) -> None:
    message = Message("assistant", "", (ToolCall("c", "look", arguments),))
    assert json.loads(encode_message(message))["tool_calls"][0]["function"]["arguments"] == "{}"


def test_reasoning_and_signatures_go_back_as_they_came() -> None:
    reply = read(PROVIDER_FIELDS)
    message = Message("assistant", reply.content, reply.tool_calls, provider_fields=reply.provider_fields)
    assert json.loads(encode_message(message)) == json.loads(PROVIDER_FIELDS.body)["choices"][0]["message"]


def test_fields_with_nothing_in_them_are_not_kept() -> None:
    assert (
        read(
            says(reasoning_content=None, annotations=[], audio=None, reasoning="", tool_calls=None)
        ).provider_fields
        == ""
    )


@given(st.dictionaries(texts().map(lambda name: f"x_{name}"), JSON_VALUES, max_size=3))
def test_any_field_on_the_list_goes_back_and_no_other(fields: dict[str, Any]) -> None:
    listed = ChatDialect(echo=tuple(fields), echo_in_calls=tuple(fields))
    reply = read(calls(a_call(**fields), a_call("take", call_id="c2"), **fields))
    message = Message("assistant", "", reply.tool_calls, provider_fields=reply.provider_fields)
    back = json.loads(encode_message(message, listed))
    empty: tuple[Any, ...] = (None, "", [])
    kept = {key: value for key, value in fields.items() if not any(value is e or value == e for e in empty)}
    assert {key: value for key, value in back.items() if key.startswith("x_")} == kept
    assert {key: value for key, value in back["tool_calls"][0].items() if key.startswith("x_")} == fields
    assert not [key for key in back["tool_calls"][1] if key.startswith("x_")]
    assert not [key for key in json.loads(encode_message(message)) if key.startswith("x_")]
