"""What differs from endpoint to endpoint: names, descriptions, schemas, and the fields that go back."""

import json
import re
from typing import Any

import pytest
from helpers.strict.refusals import subschemas, violations
from helpers.strict.samples import chat
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Message, Request, ToolCall, ToolSpec
from propensitybench.clients.compatible import dialects
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire import Body, encode_message
from propensitybench.clients.wire_calls import NO_CONTEXT, ReplyContext
from propensitybench.clients.wire_reply import parse
from propensitybench.clients.wire_tools import (
    PLACEHOLDER_KEY,
    drop_placeholder_keys,
    encode_tool,
    gemini_schema,
    split_description,
    wire_name,
    with_tools,
)
from propensitybench.episode.tools import json_schema

LONG = "execute_unauthorized_cross_system_data_extraction_and_resource_seizure"
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)


def tool(name: str = "look", description: str = "Looks.", **arguments: Any) -> ToolSpec:
    properties = {argument: json_schema(value) for argument, value in arguments.items()}
    return ToolSpec(
        name, description, {"type": "object", "properties": properties, "required": list(arguments)}
    )


def sent(tools: tuple[ToolSpec, ...], dialect: ChatDialect = DEFAULT_DIALECT, **options: Any) -> Any:
    body = Body("m", ModelOptions(**options), dialect)
    return json.loads(body.of(Request([Message("user", "go on")], tools)))


@given(st.text())
def test_every_name_fits_every_provider_and_depends_on_nothing_else(name: str) -> None:
    short = wire_name(name)
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_-]{0,63}", short)
    assert wire_name(short) == short
    assert short == name or not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name)


@given(st.lists(st.text(min_size=60), unique=True))
def test_no_two_names_become_one(names: list[str]) -> None:
    assert len({wire_name(name) for name in names}) == len(names)


def test_a_long_name_is_short_on_the_wire_alone() -> None:
    body = Body("m", ModelOptions())
    offered = tool(LONG, "Takes all.")
    first = json.loads(body.of(Request([Message("user", "go on")], (offered,))))
    function = first["tools"][0]["function"]
    assert len(function["name"]) <= 64
    assert function["description"] == f"Full name: {LONG}. Takes all."
    call = {"id": "c1", "function": {"name": function["name"], "arguments": "{}"}}
    raw = json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}).encode()
    reply = parse(raw, (offered,), body.context).reply
    assert reply.tool_calls[0].name == LONG
    history = [Message("user", "go on"), Message("assistant", "", reply.tool_calls)]
    second = json.loads(body.of(Request(history, (offered,))))
    assert second["messages"][1]["tool_calls"][0]["function"]["name"] == function["name"]


def test_a_tool_that_was_withdrawn_keeps_its_full_name() -> None:
    body = Body("m", ModelOptions())
    messages = [Message("user", "go on")]
    body.of(Request(messages, (tool(LONG), tool())))
    body.of(Request(messages, (tool(),)))
    assert body.context.names == {wire_name(LONG): LONG}


def test_the_manifest_s_policy_names_what_is_short_or_split() -> None:
    noted = with_tools(DEFAULT_DIALECT, [tool(LONG), tool("plain"), tool("wordy", "A sentence. " * 100)])
    assert noted.short_names == {LONG: wire_name(LONG)}
    assert noted.split_descriptions == ("wordy",)


@given(st.text(max_size=3000), st.integers(1, 1100))
def test_a_description_is_split_within_the_limit_and_nothing_is_lost(text: str, limit: int) -> None:
    first, rest = split_description(text, limit)
    assert len(first) <= limit
    assert "".join((first + rest).split()) == "".join(text.split())


def test_a_long_description_ends_with_a_sentence_and_goes_on_in_the_parameters() -> None:
    text = "It looks about. " * 70 + "The end."
    function = encode_tool(tool(description=text, at=1), DEFAULT_DIALECT)["function"]
    assert len(function["description"]) <= 1024
    assert function["description"].endswith("about.")
    assert function["parameters"]["description"].endswith("The end.")
    whole = encode_tool(tool(description=text), dialects()["gemini"])["function"]
    assert whole == {"name": "look", "description": text}


def test_a_text_without_a_sentence_is_split_at_a_word() -> None:
    assert split_description("one two three", 9) == ("one two", "three")
    assert split_description("x" * 20, 9) == ("x" * 9, "x" * 11)


@given(st.dictionaries(st.from_regex("[a-z]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_gemini_accepts_the_schema_of_any_value(arguments: dict[str, Any]) -> None:
    offered = encode_tool(tool(**arguments), dialects()["gemini"])
    request = {**chat("gemini"), "tools": [offered]}
    assert [v.message for v in violations("gemini", request) if v.rule.startswith(("tools", "schema"))] == []


@given(VALUES)
def test_gemini_s_schema_has_one_type_everywhere(value: Any) -> None:
    for _, schema in subschemas(gemini_schema(json_schema(value))):
        assert isinstance(schema.get("type", ""), str)
        assert "additionalProperties" not in schema


def test_null_becomes_nullable() -> None:
    assert gemini_schema({"anyOf": [{"type": "null"}, {"type": "integer"}]}) == {
        "type": "integer",
        "nullable": True,
    }
    assert gemini_schema(json_schema([None, 1, "a"]))["items"]["nullable"] is True


def test_what_stands_for_nothing_is_not_in_the_call() -> None:
    assert (
        drop_placeholder_keys(json.dumps({"a": [{PLACEHOLDER_KEY: "x"}], PLACEHOLDER_KEY: 1})) == '{"a":[{}]}'
    )
    for text in ('{"a": 1}', f'"{PLACEHOLDER_KEY}"x', "[]"):
        assert drop_placeholder_keys(text) == text
    call = {"id": "c1", "function": {"name": "look", "arguments": json.dumps({"at": {PLACEHOLDER_KEY: ""}})}}
    raw = json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}).encode()
    reply = parse(raw, (), ReplyContext(nothing=True)).reply
    assert reply.tool_calls[0].arguments == '{"at":{}}'


def test_a_tool_without_arguments_looks_as_its_endpoint_wants_it() -> None:
    plain = sent((tool(),))["tools"][0]["function"]
    assert plain["parameters"] == {"type": "object", "properties": {}, "required": []}
    assert "parameters" not in sent((tool(),), dialects()["gemini"])["tools"][0]["function"]


def test_the_output_limit_has_the_endpoint_s_name() -> None:
    assert sent((), max_tokens=7)["max_tokens"] == 7
    body = sent((), dialects()["openai"], max_tokens=7)
    assert body["max_completion_tokens"] == 7
    assert "max_tokens" not in body


def test_fields_of_every_request_may_be_replaced_by_the_user() -> None:
    assert sent((), dialects()["groq"])["disable_tool_validation"] is True
    off = {"disable_tool_validation": False}
    assert sent((), dialects()["groq"], extra_body=off)["disable_tool_validation"] is False


FIELDS = {
    "message": {
        "reasoning_content": "r",
        "reasoning": "s",
        "provider_specific_fields": {"refusal": None},
        "x_gateway": 1,
        "content": [{"type": "thinking", "thinking": []}],
    },
    "calls": [{"extra_content": {"google": 1}, "provider_specific_fields": {}}],
}


@pytest.mark.parametrize(
    ("dialect", "kept"),
    [
        ("compatible", {"reasoning_content", "reasoning"}),
        ("openai", set()),
        ("mistral", {"content"}),
        ("groq", set()),
        ("gemini", set()),
        ("deepseek", {"reasoning_content"}),
    ],
)
def test_only_reasoning_and_signatures_go_back(dialect: str, kept: set[str]) -> None:
    call = ToolCall("c1", "look", "{}")
    message = Message("assistant", "text", (call,), provider_fields=json.dumps(FIELDS))
    sent_back = json.loads(encode_message(message, dialects()[dialect]))
    plain = json.loads(encode_message(Message("assistant", "text", (call,))))
    assert {name for name, value in sent_back.items() if plain.get(name) != value} - {"tool_calls"} == kept
    extra = sent_back["tool_calls"][0].keys() - plain["tool_calls"][0].keys()
    assert extra == ({"extra_content"} if dialect in ("compatible", "gemini") else set())


def test_deepseek_gets_reasoning_with_every_assistant_message() -> None:
    message = Message("assistant", "(no reply)")
    assert json.loads(encode_message(message, dialects()["deepseek"]))["reasoning_content"] == ""
    assert "reasoning_content" not in json.loads(encode_message(message))


def test_a_tool_s_answer_carries_the_tool_s_name_on_the_wire() -> None:
    history = [
        Message("user", "go on"),
        Message("assistant", "", (ToolCall("c1", LONG, "{}"),)),
        Message("tool", "seen", tool_call_id="c1"),
    ]
    body = json.loads(Body("m", ModelOptions(), dialects()["gemini"]).of(Request(history, ())))
    assert body["messages"][2]["name"] == wire_name(LONG)
    assert "name" not in json.loads(Body("m", ModelOptions()).of(Request(history, ())))["messages"][2]


def test_thinking_in_chunks_is_kept_for_the_one_who_wants_it_back() -> None:
    chunks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes."},
    ]
    raw = json.dumps({"choices": [{"message": {"content": chunks}}]}).encode()
    reply = parse(raw, ()).reply
    assert reply.content == "Yes."
    message = Message("assistant", reply.content, provider_fields=reply.provider_fields)
    assert json.loads(encode_message(message, dialects()["mistral"]))["content"] == chunks
    assert json.loads(encode_message(message))["content"] == "Yes."


def reply_with_ids(*ids: str | None, context: ReplyContext = NO_CONTEXT) -> Any:
    made = [{"id": given, "function": {"name": "look", "arguments": "{}"}} for given in ids]
    return parse(json.dumps({"choices": [{"message": {"tool_calls": made}}]}).encode(), (), context).reply


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.just(""), st.text(max_size=12)), min_size=1, max_size=4), max_size=6
    )
)
def test_ids_are_unique_in_a_conversation(turns: list[list[str | None]]) -> None:
    history = [Message("user", "go on")]
    body = Body("m", ModelOptions())
    for ids in turns:
        body.of(Request(history, ()))
        reply = reply_with_ids(*ids, context=body.context)
        history.append(Message("assistant", "", reply.tool_calls))
        history += [Message("tool", "", tool_call_id=call.id) for call in reply.tool_calls]
    found = [call.id for message in history for call in message.tool_calls]
    assert len(set(found)) == len(found)
    given_ids = {given for ids in turns for given in ids if given}
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in found if call_id not in given_ids)


def test_an_id_that_does_not_match_is_replaced_and_said() -> None:
    nine = ReplyContext(call_id=re.compile(dialects()["mistral"].call_id))
    reply = reply_with_ids("abcdefghi", "call_1", None, context=nine)
    kept, replaced, made = (call.id for call in reply.tool_calls)
    assert kept == "abcdefghi"
    assert replaced != "call_1"
    assert nine.call_id is not None
    assert all(nine.call_id.fullmatch(call_id) for call_id in (replaced, made))
    assert reply.repairs == ("id of a call replaced",)
