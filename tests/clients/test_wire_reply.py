"""Replies as endpoints write them."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from helpers.openai_server import Answer, a_call, calls, completion, says
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Message, Reply, StopReason, ToolCall, ToolSpec, Usage
from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.clients.finish_reasons import FINISH_REASONS
from propensitybench.clients.wire_calls import MAX_CALLS, ReplyContext
from propensitybench.clients.wire_reply import parse, parse_failed_generation

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

ONE_CALL = (ToolCall("c1", "look", '{"at":1}'),)


def read(answer: Answer, tools: tuple[ToolSpec, ...] = TOOLS) -> Reply:
    """The reply in an answer, which must be one."""
    parsed = parse(answer.body, tools)
    assert parsed.error is None
    return parsed.reply


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
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("end_turn", StopReason.STOP),
        (None, StopReason.STOP),
    ],
)
def test_a_gateway_s_stop_does_not_hide_a_refusal(upstream: Any, stop: StopReason) -> None:
    choice = {"message": {"content": ""}, "finish_reason": "stop", "native_finish_reason": upstream}
    assert read(completion({}, choices=[choice])).stop is stop
    broken = {**choice, "native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    with pytest.raises(Failure, match="MALFORMED_FUNCTION_CALL"):
        parse(completion({}, choices=[broken]).body, TOOLS)


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
    ("finish", "meaning"), [(reason, row.meaning) for row in FINISH_REASONS for reason in row.reasons]
)
def test_every_finish_reason_of_the_table_is_read(finish: str, meaning: StopReason | FailureKind) -> None:
    for written in (finish, finish.upper()):
        answer = completion({"content": "x"}, written)
        if isinstance(meaning, StopReason):
            assert read(answer).stop is meaning
            continue
        with pytest.raises(Failure, match=f"ended the reply with '{written}'") as caught:
            parse(answer.body, TOOLS)
        assert caught.value.kind is meaning


@pytest.mark.parametrize("finish", ["stop", None, "tool_calls", "a new reason"])
def test_a_reply_with_calls_ends_in_calls_whatever_the_endpoint_says(finish: Any) -> None:
    assert read(completion({"tool_calls": [a_call()]}, finish)).stop is StopReason.TOOL_CALLS


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_call_may_have_been_cut(finish: str) -> None:
    assert read(completion({"tool_calls": [a_call(arguments='{"at":')]}, finish)).stop is StopReason(finish)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("content_filter: PROHIBITED_CONTENT", StopReason.CONTENT_FILTER),
        ("content_filter: SPII", StopReason.CONTENT_FILTER),
        ("RECITATION", StopReason.CONTENT_FILTER),
        ("model_length", StopReason.LENGTH),
    ],
)
def test_an_empty_reply_that_was_filtered_or_cut_says_so(finish: str, stop: StopReason) -> None:
    assert read(completion({}, choices=[{"index": 0, "finish_reason": finish}])).stop is stop
    assert read(completion({"content": None}, finish)).stop is stop


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        ("function_call_filter: MALFORMED_FUNCTION_CALL", FailureKind.UNREADABLE),
        ("insufficient_system_resource", FailureKind.OVERLOADED),
        ("error", FailureKind.SERVER),
        ("a new reason", FailureKind.UNREADABLE),
        ("tool_calls", FailureKind.UNREADABLE),
        ("", FailureKind.UNREADABLE),
    ],
)
def test_an_empty_reply_is_the_model_s_only_if_it_is_said_to_be_whole(finish: str, kind: FailureKind) -> None:
    with pytest.raises(Failure, match=re.escape(finish or "missing")) as caught:
        parse(completion({"content": None}, finish or None).body, TOOLS)
    assert caught.value.kind is kind
    assert read(completion({"content": None}, "stop")).stop is StopReason.STOP


def test_a_text_with_a_reason_that_nobody_knows_is_the_model_s() -> None:
    assert read(completion({"content": "x"}, "a new reason")) == read(says("x"))


@pytest.mark.parametrize("beside", [{}, {"tool_calls": None}, {"tool_calls": []}])
def test_a_call_in_the_form_of_old_is_a_call(beside: dict[str, Any]) -> None:
    legacy = {"content": None, "function_call": {"name": "take", "arguments": "{}"}, **beside}
    (call,) = read(completion(legacy, "function_call")).tool_calls
    assert (call.name, call.arguments) == ("take", "{}")
    both = read(completion({**legacy, "tool_calls": [a_call()]}, "tool_calls"))
    assert both.tool_calls == ONE_CALL


def test_a_choice_that_ended_in_an_error_is_no_reply() -> None:
    choice = {"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "x"}}
    assert parse(completion({}, choices=[choice]).body, TOOLS).error == choice["error"]


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


@pytest.mark.parametrize("body", [b"{}", b'{"detail":"busy"}', b'{"choices":[]}', b'{"choices":[{}]}'])
def test_json_of_another_shape_is_unreadable_and_not_the_model_s_silence(body: bytes) -> None:
    with pytest.raises(Failure):
        parse(body, TOOLS)


def test_more_calls_than_a_reply_can_have_are_unreadable() -> None:
    made = [a_call(call_id=f"c{number}") for number in range(MAX_CALLS + 1)]
    assert len(parse(calls(*made[1:]).body, TOOLS).reply.tool_calls) == MAX_CALLS
    with pytest.raises(Failure, match="257 tool calls; at most 256 are read"):
        parse(calls(*made).body, TOOLS)


def test_an_id_is_made_when_every_one_has_been_used() -> None:
    taken = {f"call{number:05d}" for number in range(100_000)}
    call, repair = ReplyContext(ids=taken, messages=3).call(None, "look", "{}", 1)
    assert (call.id, repair) == ("c00000301", "")


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
