"""Requests as an endpoint expects them, and replies as endpoints write them."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from helpers.openai_server import PROVIDER_FIELDS, Answer, a_call, calls, completion, request_of, says
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Message, Reply, Request, Role, StopReason, ToolCall, ToolSpec, Usage
from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire import Body, encode_message
from propensitybench.clients.wire_policy import WirePolicy
from propensitybench.clients.wire_reply import parse, parse_failed_generation
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
    listed = WirePolicy(echo=tuple(fields), echo_in_calls=tuple(fields))
    reply = read(calls(a_call(**fields), a_call("take", call_id="c2"), **fields))
    message = Message("assistant", "", reply.tool_calls, provider_fields=reply.provider_fields)
    back = json.loads(encode_message(message, listed))
    empty: tuple[Any, ...] = (None, "", [])
    kept = {key: value for key, value in fields.items() if not any(value is e or value == e for e in empty)}
    assert {key: value for key, value in back.items() if key.startswith("x_")} == kept
    assert {key: value for key, value in back["tool_calls"][0].items() if key.startswith("x_")} == fields
    assert not [key for key in back["tool_calls"][1] if key.startswith("x_")]
    assert not [key for key in json.loads(encode_message(message)) if key.startswith("x_")]


ONE_CALL = (ToolCall("c1", "look", '{"at":1}'),)


def test_a_plain_message_is_read() -> None:
    reply = read(says("hello"))
    assert reply == Reply("hello", (), StopReason.STOP, Usage(100, 10), "m")


def test_a_plain_call_is_read() -> None:
    assert read(calls()) == Reply("", ONE_CALL, StopReason.TOOL_CALLS, Usage(100, 10), "m")


@pytest.mark.parametrize(
    ("given_arguments", "arguments", "repairs"),
    [
        ('{"at":1}', '{"at":1}', ()),
        ("", "{}", ()),
        (None, "{}", ()),
        ("no json", "no json", ()),
        ('{"at":1}"', '{"at":1}', ("quotes behind the arguments",)),
        ('{"at":1}\'"\n', '{"at":1}', ("quotes behind the arguments",)),
        ('{"at":1}```', '{"at":1}', ("quotes behind the arguments",)),
        ({"at": 1}, '{"at": 1}', ("arguments not written as a text",)),
        ([1], "[1]", ("arguments not written as a text",)),
    ],
)
def test_arguments_are_repaired_where_that_is_safe(
    given_arguments: Any, arguments: str, repairs: tuple[str, ...]
) -> None:
    reply = read(calls(a_call(arguments=given_arguments)))
    assert reply.tool_calls == (ToolCall("c1", "look", arguments),)
    assert reply.repairs == repairs


def test_several_calls_and_text_beside_them_are_kept() -> None:
    reply = read(calls(a_call(), a_call("take", "{}", "c2"), content="I will look"))
    assert reply.content == "I will look"
    assert reply.tool_calls == (*ONE_CALL, ToolCall("c2", "take", "{}"))


def test_calls_without_an_id_get_different_ones() -> None:
    no_id = {"function": {"name": "look", "arguments": "{}"}}
    made = [call.id for call in read(calls(no_id, {**no_id, "id": None})).tool_calls]
    assert made == ["call00000", "call00001"]


@pytest.mark.parametrize("key", ["arguments", "parameters"])
@pytest.mark.parametrize("write", [json.dumps, lambda value: value])
def test_a_call_left_in_the_text_is_found(key: str, write: Callable[[Any], Any]) -> None:
    call = json.dumps({"name": "look", key: write({"at": 1})})
    reply = read(says(f"Well.\n<tool_call>\n{call}\n</tool_call>"))
    assert reply.content == "Well."
    assert [(made.name, json.loads(made.arguments)) for made in reply.tool_calls] == [("look", {"at": 1})]
    assert (reply.stop, reply.repairs) == (StopReason.TOOL_CALLS, ("call left in the text",))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"unheard_of","arguments":{}}</tool_call>',
        "<tool_call>{broken}</tool_call>",
        '<tool_call>{"name":"look"}',
        "<tool_call></tool_call>",
        pytest.param('<tool_call>{"name":["look"]}</tool_call>'),
    ],
)
def test_what_only_looks_like_a_call_stays_text(text: str) -> None:
    assert read(says(text)) == Reply(text, (), StopReason.STOP, Usage(100, 10), "m")


def test_null_arguments_in_the_text_are_none() -> None:
    reply = read(says('<tool_call>{"name":"look","arguments":null}</tool_call>'))
    assert reply.tool_calls[0].arguments == "{}"


def test_content_in_parts_is_put_together() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, "x", {"type": "text", "text": "b"}]
    assert read(completion({"content": parts})).content == "ab"


@pytest.mark.parametrize("content", [None, 7, {"a": 1}, []])
def test_content_of_another_kind_is_none(content: Any) -> None:
    assert read(completion({"content": content})).content == ""


@pytest.mark.parametrize("content", [None, "", []])
@pytest.mark.parametrize(
    "moved", [{"refusal": "I must not"}, {"provider_specific_fields": {"refusal": "I must not"}}]
)
def test_a_refusal_in_words_is_the_content(content: Any, moved: dict[str, Any]) -> None:
    assert read(completion({"content": content, **moved})).content == "I must not"
    assert read(completion({"content": "Yes.", **moved})).content == "Yes."


@pytest.mark.parametrize(
    ("upstream", "stop"),
    [
        ("refusal", StopReason.REFUSAL),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("end_turn", StopReason.STOP),
        (None, StopReason.STOP),
    ],
)
def test_a_gateway_s_stop_does_not_hide_a_refusal(upstream: Any, stop: StopReason) -> None:
    choice = {"message": {"content": ""}, "finish_reason": "stop", "native_finish_reason": upstream}
    assert read(completion({}, choices=[choice])).stop is stop


@pytest.mark.parametrize(
    ("written", "call", "content"),
    [
        ('{"name": "look", "arguments": {"at": "1"}}', ("look", '{"at":"1"}'), ""),
        ('{"name": "take", "parameters": {}}', ("take", "{}"), ""),
        ('<function=look>{"at": "1"}</function>', ("look", '{"at": "1"}'), ""),
        ("I look at 1.", None, "I look at 1."),
    ],
)
def test_a_call_that_groq_refuses_is_what_the_model_wrote(
    written: str, call: tuple[str, str] | None, content: str
) -> None:
    body = {"error": {"message": "x", "code": "tool_use_failed", "failed_generation": written}}
    reply = parse_failed_generation(json.dumps(body).encode())
    assert reply is not None
    assert [(made.name, made.arguments) for made in reply.tool_calls] == ([call] if call else [])
    assert (reply.content, reply.repairs) == (content, ("reply taken from the endpoint's error",))
    wrapped = {"error": {"message": f"GroqException - {json.dumps(body)}. Group=m", "code": "400"}}
    assert parse_failed_generation(json.dumps(wrapped).encode()) == reply


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": "x"}', b'{"error": {"code": "tool_use_failed"}}'])
def test_an_error_without_the_model_s_words_is_no_reply(body: bytes) -> None:
    assert parse_failed_generation(body) is None


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", StopReason.STOP),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("refusal", StopReason.REFUSAL),
        ("eos", StopReason.STOP),
        (None, StopReason.STOP),
    ],
)
def test_why_a_reply_ended_is_read(finish: Any, stop: StopReason) -> None:
    assert read(completion({"content": "x"}, finish)).stop is stop
    assert read(completion({"tool_calls": [a_call()]}, finish)).stop is StopReason.TOOL_CALLS


def test_a_choice_that_ended_in_an_error_is_no_reply() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "x"}}
    assert parse(completion({}, choices=[choice]).body, TOOLS).error == choice["error"]
    del choice["error"]
    assert parse(completion({}, choices=[choice]).body, TOOLS).error is not None


def test_tokens_are_counted_with_their_parts() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert read(completion({}, usage=usage)).usage == Usage(10, 5, 4, 3)
    nothing = {"prompt_tokens": None, "completion_tokens_details": {"reasoning_tokens": None}}
    assert read(completion({}, usage=nothing)).usage == Usage()
    assert read(completion({}, usage=None)).usage == Usage()


def test_an_error_object_in_place_of_a_reply_is_given_back() -> None:
    assert parse(b'{"error":{"message":"x"}}', TOOLS).error == {"message": "x"}
    assert parse(says("a").body.replace(b"{", b'{"error":null,', 1), TOOLS).reply.content == "a"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"<html>",
        b'{"choices":[{"message":',
        b'{"choices":[{"message":null}]}',
        b'{"choices":[{"message":{"tool_calls":[{"function":null}]}}]}',
        b'{"choices":[{"message":{"content":"\\ud800"}}]}',
        b'{"choices":[{"message":{"content":"\xff"}}]}',
        b'{"choices":[{"message":{"content":' + b"[" * 100_000,
    ],
)
def test_what_is_no_chat_completion_is_unreadable(body: bytes) -> None:
    with pytest.raises(Failure, match="the answer is not a chat completion") as caught:
        parse(body, TOOLS)
    assert caught.value.kind is FailureKind.UNREADABLE


@pytest.mark.parametrize("body", [b"{}", b'{"detail":"busy"}', b'{"choices":[{}]}'])
def test_json_of_another_shape_is_unreadable_and_not_the_model_s_silence(body: bytes) -> None:
    with pytest.raises(Failure):
        parse(body, TOOLS)


COMPLETIONS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "message": st.dictionaries(
                        st.sampled_from(["content", "tool_calls", "refusal", "reasoning", "x"]),
                        st.one_of(JSON_VALUES, st.lists(st.fixed_dictionaries({"function": JSON_VALUES}))),
                    ),
                    "finish_reason": JSON_VALUES,
                },
            ),
            max_size=2,
        ),
        "usage": JSON_VALUES,
        "error": JSON_VALUES,
    },
)


@given(st.one_of(st.binary(), JSON_VALUES.map(json.dumps), COMPLETIONS.map(json.dumps)))
def test_no_answer_is_too_odd_to_be_read_or_unreadable(body: bytes | str) -> None:
    with suppress(Failure):
        parse(body if isinstance(body, bytes) else body.encode(), TOOLS)
