"""The rules of the strict fakes: for each a request that passes, and its smallest change that does not."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from helpers import strict as package
from helpers.strict import PROVIDERS
from helpers.strict.anthropic import signature as thought
from helpers.strict.samples import GONE, ID, LOOK, TOOL, Edits, chat, edited, messages_api

NOTHING: Final[Edits] = MappingProxyType({})
DESCRIBED: Final[Edits] = {"tools.0.function.parameters.properties.at.description": "where"}
THIRD: Final[Edits] = {"messages.4": {"role": "assistant", "content": "Seen."}}
ALONE: Final[Edits] = {"messages": [{"role": "user", "content": "Hello"}]}


class Case(NamedTuple):
    """``before`` leaves the request fit, ``change`` makes it break the rule."""

    providers: str
    rule: str
    change: Edits
    before: Edits = NOTHING


FUNCTION: Final = "tools.0.function"
SCHEMA: Final = f"{FUNCTION}.parameters"
AT: Final = f"{SCHEMA}.properties.at"
ASKED: Final = "messages.2.tool_calls.0"
DEEPSEEKS: Final = "deepseek deepseek-v3.2 deepseek-r1"
ALL: Final = f"openai mistral gemini groq {DEEPSEEKS}"
UNKNOWN: Final = "openai mistral gemini groq"
O3: Final[Edits] = {"model": "o3"}

CASES: Final = [
    Case(UNKNOWN, "top.unknown", {"reasoning": {}}, {"temperature": 1}),
    Case("mistral", "top.unknown", {"max_completion_tokens": 9}, {"max_tokens": 9}),
    Case("mistral gemini", "top.unknown", {"seed": 1}),
    Case("mistral", "top.unknown", {"reasoning_effort": "low"}),
    Case("gemini", "top.unknown", {"frequency_penalty": 0}),
    Case("groq", "top.unknown", {"logprobs": True}),
    Case("openai", "options.both_limits", {"max_tokens": 9}, {"max_completion_tokens": 9}),
    Case("openai", "options.reasoning_effort", {"reasoning_effort": "low"}),
    Case("openai", "options.max_tokens", {"max_tokens": 9}, {**O3, "temperature": 1}),
    Case("openai", "options.temperature", {"temperature": 0}, O3),
    Case("openai", "options.top_p", {"top_p": 0.5}, O3),
    Case("openai", "options.stop", {"stop": ["x"]}, {**O3, "reasoning_effort": "low"}),
    Case("openai", "options.effort_with_tools", {"reasoning_effort": "low"}, {"model": "gpt-5.4"}),
    Case(
        "openai",
        "options.effort_with_tools",
        {"reasoning_effort": GONE},
        {"model": "gpt-5.6", "reasoning_effort": "none"},
    ),
    Case("groq", "options.n", {"n": 2}, {"n": 1}),
    Case("groq", "options.reasoning_effort", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}),
    Case(
        "groq", "options.reasoning_effort", {"reasoning_effort": "low"}, {"model": "llama-3.3-70b-versatile"}
    ),
    Case(DEEPSEEKS, "options.temperature", {"temperature": 3}, {"temperature": 2}),
    Case(DEEPSEEKS, "options.max_tokens", {"max_tokens": 0}, {"max_tokens": 1}),
    Case(ALL, "messages.empty", {"messages": []}, ALONE),
    Case(ALL, "messages.role", {"messages.0.role": "narrator"}),
    Case(f"mistral {DEEPSEEKS}", "messages.role", {"messages.0.role": "developer"}),
    Case(UNKNOWN, "messages.unknown", {"messages.2.reasoning_content": "Let me see."}),
    Case("mistral gemini groq", "messages.unknown", {"messages.2.annotations": []}),
    Case("groq", "messages.unknown", {"messages.3.name": "look"}),
    Case("groq", "messages.unknown", {"messages.2.provider_specific_fields": {}}),
    Case(
        "groq",
        "messages.reasoning",
        {"model": "llama-3.3-70b-versatile"},
        {"messages.2.reasoning": "Let me see."},
    ),
    Case(DEEPSEEKS, "messages.content", {"messages.2.content": GONE}),
    Case(DEEPSEEKS, "messages.content", {"messages.1.content": None}),
    Case(
        "openai mistral gemini groq deepseek-r1",
        "messages.content",
        {"messages.4.content": None},
        {**THIRD, "messages.5": {"role": "user", "content": "Go on."}},
    ),
    Case("gemini", "messages.tool_name", {"messages.3.name": GONE}),
    Case("openai mistral gemini groq", "calls.unknown", {f"{ASKED}.odd": 0}),
    Case("openai groq", "calls.unknown", {f"{ASKED}.index": 0}),
    Case("mistral", "calls.unknown", {f"{ASKED}.function.odd": 0}),
    Case(f"openai groq {DEEPSEEKS}", "calls.missing", {f"{ASKED}.type": GONE}),
    Case(
        "openai",
        "calls.empty",
        {"messages.1.tool_calls": []},
        {**ALONE, "messages.1": {"role": "assistant", "content": "Hello"}},
    ),
    Case(
        "openai",
        "calls.id",
        {f"{ASKED}.id": "i" * 41, "messages.3.tool_call_id": "i" * 41},
        {f"{ASKED}.id": "i" * 40, "messages.3.tool_call_id": "i" * 40},
    ),
    Case("mistral", "calls.id", {f"{ASKED}.id": "call_1234", "messages.3.tool_call_id": "call_1234"}),
    Case("mistral", "calls.name", {f"{ASKED}.function.name": "no name"}),
    Case(
        "openai",
        "calls.arguments",
        {f"{ASKED}.function.arguments": {"at": 1}},
        {f"{ASKED}.function.arguments": "{"},
    ),
    Case(f"mistral gemini groq {DEEPSEEKS}", "calls.arguments", {f"{ASKED}.function.arguments": '{"at": '}),
    Case(f"mistral gemini groq {DEEPSEEKS}", "calls.arguments", {f"{ASKED}.function.arguments": "[1]"}),
    Case("gemini", "calls.signature", {f"{ASKED}.extra_content": GONE}),
    Case("gemini", "calls.signature", {f"{ASKED}.extra_content.google.thought_signature": "c2ln"}),
    Case(
        "gemini",
        "calls.signature",
        {"model": "gemini-3-pro"},
        {"model": "gemini-2.5-pro", f"{ASKED}.extra_content": GONE},
    ),
    Case(
        "gemini",
        "calls.signature",
        {"messages.5": GONE},  # the turn of the call is the current one again
        {
            f"{ASKED}.extra_content": GONE,
            "messages.4": {"role": "assistant", "content": "Seen."},
            "messages.5": {"role": "user", "content": "Go on."},
        },
    ),
    Case("mistral", "order.roles", {"messages.4": {"role": "user", "content": "Go on."}}),
    Case("mistral", "order.roles", {"messages.1": {"role": "user", "content": "Hello"}}, ALONE),
    Case("mistral", "order.start", {"messages": [{"role": "assistant", "content": "Hello", "prefix": True}]}),
    Case(
        "mistral",
        "order.last",
        {"messages.4.prefix": False},
        {"messages.4": {"role": "assistant", "content": "So", "prefix": True}},
    ),
    Case("deepseek-r1", "order.roles", {"messages.1": {"role": "user", "content": "Hello"}}, ALONE),
    Case("gemini", "order.roles", {"messages.1.role": "system"}),
    Case("openai", "order.unanswered", {"messages.3": GONE}),
    Case(f"mistral gemini groq {DEEPSEEKS}", "order.unanswered", {"messages.3.tool_call_id": "otherothe"}),
    Case(f"openai {DEEPSEEKS}", "order.stray", {"messages.2": GONE}),
    Case(ALL, "tools.empty", {"tools": []}, {"tools": GONE}),
    Case(ALL, "tools.name", {f"{FUNCTION}.name": "n" * 65}, {f"{FUNCTION}.name": "n" * 64}),
    Case(ALL, "tools.name", {f"{FUNCTION}.name": "look at"}),
    Case("gemini", "tools.name", {f"{FUNCTION}.name": "1look"}, {f"{FUNCTION}.name": "_look"}),
    Case(
        ALL,
        "tools.twice",
        {"tools.1.function.name": "look"},
        {"tools.1": edited(TOOL, {"function.name": "b"})},
    ),
    Case(
        f"openai {DEEPSEEKS}",
        "tools.many",
        {"tools": [edited(TOOL, {"function.name": f"t{k}"}) for k in range(129)]},
    ),
    Case("openai", "tools.missing", {"tools.0.type": GONE}),
    Case(UNKNOWN, "tools.unknown", {f"{FUNCTION}.odd": 1}, {f"{FUNCTION}.strict": False}),
    Case(
        "openai",
        "tools.description",
        {f"{FUNCTION}.description": "d" * 1025},
        {f"{FUNCTION}.description": "d" * 1024},
    ),
    Case("mistral", "tools.parameters", {SCHEMA: GONE}, {SCHEMA: {"type": "object", "properties": {}}}),
    Case(DEEPSEEKS, "tools.root", {SCHEMA: GONE}, {SCHEMA: {"type": "object", "properties": {}}}),
    Case(f"openai groq gemini {DEEPSEEKS}", "tools.root", {f"{SCHEMA}.type": "string"}, DESCRIBED),
    Case("openai", "tools.root", {f"{SCHEMA}.anyOf": []}),
    Case("openai", "tools.properties", {f"{SCHEMA}.properties": GONE}, {f"{SCHEMA}.properties": {}}),
    Case(
        "openai gemini",
        "tools.items",
        {f"{AT}.items": GONE},
        {AT: {"type": "array", "items": {"type": "string"}}},
    ),
    Case("openai", "tools.items", {f"{AT}.type": ["string", "array"]}, {f"{AT}.type": ["string", "null"]}),
    Case("gemini", "tools.properties", {SCHEMA: {"type": "object", "properties": {}}}, {SCHEMA: GONE}),
    Case("gemini", "tools.properties", {AT: {"type": "object"}}),
    Case("gemini", "schema.keyword", {f"{SCHEMA}.additionalProperties": False}),
    Case("gemini", "schema.keyword", {f"{AT}.const": 1}),
    Case("gemini", "schema.type", {f"{AT}.type": ["integer", "null"]}, {f"{AT}.nullable": True}),
    Case("gemini", "schema.type", {f"{AT}.type": GONE}),
    Case("gemini", "schema.only_object", {f"{AT}.required": []}),
    Case("gemini", "schema.required", {f"{SCHEMA}.required.1": "by"}),
    Case(
        "gemini",
        "schema.enum",
        {f"{AT}.enum": [1]},
        {AT: {"type": "string", "enum": ["a"]}, f"{SCHEMA}.title": "t"},
    ),
    Case("gemini", "schema.format", {f"{AT}.format": "uri"}, {AT: {"type": "string", "format": "date-time"}}),
    Case("deepseek deepseek-v3.2", "messages.reasoning_content", {"messages.2.reasoning_content": GONE}),
    Case(
        "deepseek",
        "messages.reasoning_content",
        {"thinking": GONE},
        {"thinking": {"type": "disabled"}, "messages.2.reasoning_content": GONE},
    ),
    Case(
        "deepseek-v3.2",
        "messages.reasoning_content",
        {"messages.4": GONE},
        {"messages.2.reasoning_content": GONE, "messages.4": {"role": "user", "content": "Go on."}},
    ),
    Case("deepseek-r1", "messages.reasoning_content", {"messages.2.reasoning_content": "Let me see."}),
]

RESULT: Final = "messages.2.content.0"
USE: Final = "messages.1.content.1"
INPUT: Final = "tools.0.input_schema"
THOUGHT: Final = {"type": "thinking", "thinking": "Hm.", "signature": thought("Hm.")}
TEXT: Final = {"type": "text", "text": "x"}
DONE: Final = {"type": "tool_result", "tool_use_id": ID, "content": "a tree"}
AGAIN: Final = {"type": "tool_use", "id": ID, "name": "look", "input": {}}
DASHED: Final[Edits] = {f"{USE}.id": "a-b", f"{RESULT}.tool_use_id": "a-b"}
LAST: Final[Edits] = {"messages.3": {"role": "assistant", "content": "So"}}
THINKING: Final[Edits] = {
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages.1.content.0": THOUGHT,
}

_ANTHROPIC: Final[list[tuple[str, Edits, Edits]]] = [
    ("top.unknown", {"seed": 1}, {"temperature": 0.5}),
    ("top.missing", {"max_tokens": GONE}, {}),
    ("options.temperature", {"temperature": 1.5}, {"temperature": 1}),
    ("options.top_p", {"top_p": 0.5}, {"temperature": 0.5}),
    ("messages.empty", {"messages": []}, ALONE),
    ("messages.role", {"messages.0.role": "system"}, {}),
    ("messages.unknown", {"messages.0.name": "me"}, {}),
    ("messages.content", {"messages.0.content": ""}, {}),
    ("messages.trailing", {"messages.3.content": "So "}, LAST),
    ("messages.text", {"messages.1.content.0.text": ""}, {}),
    ("messages.text", {"messages.1.content.0.text": "\n"}, {}),
    ("messages.text", {"system": [{"type": "text", "text": ""}]}, {}),
    ("blocks.type", {"messages.0.content": [{"type": "odd"}]}, {}),
    ("blocks.unknown", {f"{USE}.text": "x"}, {}),
    ("calls.arguments", {f"{USE}.input": '{"at": 1}'}, {}),
    ("calls.id", {f"{USE}.id": "a.b", f"{RESULT}.tool_use_id": "a.b"}, DASHED),
    ("calls.twice", {"messages.1.content.2": AGAIN}, {}),
    ("order.start", {"messages.0.role": "assistant"}, {}),
    ("order.unanswered", {"messages.2.content": "Go on."}, {}),
    ("order.stray", {"messages.1.content": "Yes."}, {}),
    ("order.results_first", {"messages.2.content": [TEXT, DONE]}, {"messages.2.content": [DONE, TEXT]}),
    ("thinking.last", {"messages.3.content": [THOUGHT]}, LAST),
    ("thinking.signature", {"messages.1.content.0.signature": "other"}, THINKING),
    ("thinking.budget", {"thinking.budget_tokens": 1023}, THINKING),
    ("thinking.budget", {"thinking.budget_tokens": 4096}, THINKING),
    ("thinking.temperature", {"temperature": 0}, THINKING),
    ("thinking.tool_choice", {"tool_choice": {"type": "any"}}, THINKING),
    ("thinking.missing", {"messages.1.content.0": {"type": "text", "text": "Yes."}}, THINKING),
    ("tools.unknown", {"tools.0.parameters": {}}, {}),
    ("tools.name", {"tools.0.name": "n" * 65}, {"tools.0.name": "n" * 64}),
    ("tools.parameters", {INPUT: GONE}, {INPUT: {"type": "object"}}),
    ("tools.root", {f"{INPUT}.type": "array"}, {f"{INPUT}.additionalProperties": False}),
    ("tools.root", {f"{INPUT}.anyOf": []}, {}),
    ("tools.twice", {"tools.1.name": "look"}, {"tools.1": {"name": "b", "input_schema": LOOK}}),
    ("schema.invalid", {f"{INPUT}.required": True}, {}),
]
ANTHROPIC: Final = [Case("anthropic", *row) for row in _ANTHROPIC]


def each(cases: list[Case]) -> list[Any]:
    return [
        pytest.param(provider, case, id=f"{provider} {case.rule} {n}")
        for n, case in enumerate(cases)
        for provider in case.providers.split()
    ]


@pytest.mark.parametrize(("provider", "case"), each([*CASES, *ANTHROPIC]))
def test_the_smallest_change_is_refused(provider: str, case: Case) -> None:
    start = messages_api() if provider == "anthropic" else chat(provider)
    fit = edited(start, case.before)
    assert PROVIDERS[provider].violations(fit, {}) == []
    found = PROVIDERS[provider].violations(edited(fit, case.change), {})
    assert case.rule in {violation.rule for violation in found}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("version.sampling", {"temperature": 1}),
        ("version.document", {"messages.1.content.0": {"type": "document", "source": {}}}),
        ("version.citations", {"messages.0.content": [{**TEXT, "citations": [{}]}]}),
    ],
)
def test_what_a_newer_version_refuses(rule: str, change: Edits) -> None:
    def rules(body: Any, version: str) -> list[str]:
        headers = {"authorization": "Bearer k", "anthropic-version": version}
        return [violation.rule for violation in PROVIDERS["anthropic"].violations(body, headers)]

    assert rules(messages_api(), "2026-10-21") == []
    assert rules(edited(messages_api(), change), "2023-06-01") == []
    assert rules(edited(messages_api(), change), "2026-10-21") == [rule]


@pytest.mark.parametrize("provider", ["openai", "mistral", "gemini", "groq", "deepseek", "anthropic"])
def test_every_rule_is_tried(provider: str) -> None:
    text = (Path(str(package.__file__)).parent / f"{provider}.py").read_text(encoding="utf-8")
    rules = set(
        re.findall(r'"((?:top|options|messages|calls|order|tools|schema|blocks|thinking)\.[a-z_]+)"', text)
    )
    tried = {
        case.rule for case in (*CASES, *ANTHROPIC) if provider in case.providers.replace("-", " ").split()
    }
    assert len(rules) > 10
    assert rules - tried == set()


def test_shapes_of_errors() -> None:
    def body(provider: str, edits: Edits) -> Any:
        start = messages_api() if provider == "anthropic" else chat(provider)
        return PROVIDERS[provider].violations(edited(start, edits), {})[0]

    assert set(body("openai", {"odd": 1}).body["error"]) == {"message", "type", "param", "code"}
    refused = body("mistral", {"messages.2.odd": 1})
    assert refused.status == 422
    assert refused.body["message"]["detail"][0]["loc"] == ["body", "messages", 2, "assistant", "odd"]
    refused = body("mistral", {"messages.4": {"role": "user", "content": "Go on."}})
    assert refused.status == 400
    assert refused.body["code"] == "3230"
    assert refused.body["message"] == "Unexpected role 'user' after role 'tool'"
    assert body("gemini", {"odd": 1}).body[0]["error"]["status"] == "INVALID_ARGUMENT"
    assert body("groq", {"odd": 1}).body["error"]["type"] == "invalid_request_error"
    assert body("deepseek", {"tools": []}).body["error"]["code"] == "invalid_request_error"
    assert body("anthropic", {"odd": 1}).body["type"] == "error"


def test_headers_of_anthropic() -> None:
    def rules(headers: Mapping[str, str]) -> list[str]:
        return [v.rule for v in PROVIDERS["anthropic"].violations(messages_api(), headers)]

    assert rules({"X-Api-Key": "k", "Anthropic-Version": "2023-06-01"}) == []
    assert rules({"anthropic-version": "2023-06-01"}) == ["headers.key"]
    assert rules({"x-api-key": "k"}) == ["headers.version"]
