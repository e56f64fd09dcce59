"""For each rule of the strict endpoints a request that passes, and its smallest change that does not."""

import json
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from helpers.openai_server import always, calls, says
from helpers.strict import PROVIDERS, strict, violations
from helpers.strict.replies import tool_use_failed
from helpers.strict.rules import SAYS
from helpers.strict.samples import CALL, GONE, TOOL, Edits, chat, edited

FUNCTION: Final = "tools.0.function"
SCHEMA: Final = f"{FUNCTION}.parameters"
AT: Final = f"{SCHEMA}.properties.at"
ASKED: Final = "messages.2.tool_calls.0"
DEEPSEEKS: Final = "deepseek deepseek-v3.2 deepseek-r1"
ALL: Final = f"openai mistral gemini groq {DEEPSEEKS}"
UNKNOWN: Final = "openai mistral gemini groq"


class Case(NamedTuple):
    """``before`` leaves the request fit, ``change`` makes it break the rule."""

    providers: str
    rule: str
    change: Edits
    before: Edits = MappingProxyType({})


CASES: Final = [
    Case(UNKNOWN, "top.unknown", {"reasoning": {}}, {"temperature": 1}),
    Case(UNKNOWN, "messages.unknown", {"messages.2.reasoning_content": "Let me see."}),
    Case(UNKNOWN, "calls.unknown", {f"{ASKED}.odd": 0}),
    Case(UNKNOWN, "tools.unknown", {f"{FUNCTION}.odd": 1}, {f"{FUNCTION}.strict": False}),
    Case("openai", "options.limit", {"max_tokens": 9}, {"model": "o3", "temperature": 1}),
    Case("openai", "options.sampling", {"temperature": 0}, {"model": "o3"}),
    Case("openai", "options.effort", {"reasoning_effort": "low"}),
    Case("openai", "options.effort_with_tools", {"model": "gpt-5.6"}, {"model": "gpt-5"}),
    Case(UNKNOWN, "messages.content", {"messages.2.tool_calls": GONE, "messages.3": GONE}),
    Case(DEEPSEEKS, "messages.content", {"messages.2.content": GONE}),
    Case("gemini", "messages.tool_name", {"messages.3.name": GONE}),
    Case("groq", "messages.reasoning", {"model": "llama-3.3"}, {"messages.2.reasoning": "Hm."}),
    Case("deepseek deepseek-v3.2", "messages.reasoning", {"messages.2.reasoning_content": GONE}),
    Case("deepseek-r1", "messages.reasoning", {"messages.2.reasoning_content": "Let me see."}),
    Case(
        "deepseek-v3.2",
        "messages.reasoning",
        {"messages.4": GONE},
        {"messages.2.reasoning_content": GONE, "messages.4": {"role": "user", "content": "Go on."}},
    ),
    Case(
        "openai",
        "calls.id",
        {f"{ASKED}.id": "i" * 41, "messages.3.tool_call_id": "i" * 41},
        {f"{ASKED}.id": "i" * 40, "messages.3.tool_call_id": "i" * 40},
    ),
    Case("mistral", "calls.id", {f"{ASKED}.id": "call_1234", "messages.3.tool_call_id": "call_1234"}),
    Case(ALL, "calls.arguments", {f"{ASKED}.function.arguments": "[1]"}),
    Case("gemini", "calls.signature", {f"{ASKED}.extra_content": GONE}),
    Case("gemini", "calls.signature", {f"{ASKED}.extra_content.google.thought_signature": "c2ln"}),
    Case(UNKNOWN + " deepseek deepseek-v3.2", "order.pairs", {"messages.3": GONE}),
    Case(ALL, "order.pairs", {"messages.3.tool_call_id": "otherothe"}),
    Case("mistral", "order.roles", {"messages.4": {"role": "user", "content": "Go on."}}),
    Case("mistral deepseek-r1", "order.roles", {"messages.2": {"role": "user", "content": "Look."}}),
    Case(ALL, "tools.empty", {"tools": []}, {"tools": GONE}),
    Case(ALL, "tools.name", {f"{FUNCTION}.name": "n" * 65}, {f"{FUNCTION}.name": "n" * 64}),
    Case(ALL, "tools.twice", {"tools.1": TOOL}, {"tools.1": edited(TOOL, {"function.name": "b"})}),
    Case("openai", "tools.description", {f"{FUNCTION}.description": "d" * 1025}),
    Case(f"mistral {DEEPSEEKS}", "tools.parameters", {SCHEMA: GONE}),
    Case("openai", "tools.items", {f"{AT}.type": ["string", "array"]}),
    Case("gemini", "schema.keyword", {f"{SCHEMA}.additionalProperties": False}),
    Case("gemini", "schema.node", {SCHEMA: {"type": "object", "properties": {}}}, {SCHEMA: GONE}),
    Case("gemini", "schema.node", {f"{AT}.type": ["integer", "null"]}, {f"{AT}.nullable": True}),
    Case("gemini", "schema.node", {f"{AT}.type": "array"}),
    Case("gemini", "schema.node", {f"{AT}.required": []}),
    Case("gemini", "schema.node", {f"{SCHEMA}.required.1": "by"}),
    Case("gemini", "schema.node", {f"{AT}.enum": [1]}),
]


@pytest.mark.parametrize(
    ("provider", "case"), [(provider, case) for case in CASES for provider in case.providers.split()]
)
def test_the_smallest_change_is_refused(provider: str, case: Case) -> None:
    fit = edited(chat(provider), case.before)
    assert violations(provider, fit) == []
    assert case.rule in {found.rule for found in violations(provider, edited(fit, case.change))}


def test_every_rule_is_tried_at_every_provider_that_has_it() -> None:
    tried = {(case.rule, provider) for case in CASES for provider in case.providers.split()}
    assert tried >= {(rule, provider) for rule, says in SAYS.items() for provider in says}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_dressed_reply_is_taken_back_by_its_provider(provider: str) -> None:
    fake = strict(provider, always(calls(CALL)))
    request = edited(chat(provider), {"messages.3": GONE, "messages.2": GONE})
    reply = json.loads(fake(request, 1).body)["choices"][0]["message"]
    answer = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": "a tree"}
    keep = {"role", "content", "tool_calls"} | (
        {"reasoning_content"} if provider in DEEPSEEKS[:22] else set()
    )
    kept = {"content": None} | {name: value for name, value in reply.items() if name in keep}
    named = {**answer, "name": "look"} if provider == "gemini" else answer
    assert strict(provider, always(says()))(
        {**request, "messages": [*request["messages"], kept, named]}, 2
    ).is_good
    assert fake.refused == []


def test_groq_checks_the_calls_of_the_model() -> None:
    def fails(name: str, arguments: str, **options: Any) -> bool:
        made = {
            "choices": [{"message": {"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}}]
        }
        return tool_use_failed(made, {**chat("groq"), **options}) is not None

    assert not fails("look", '{"at": 1}')
    assert not fails("look", "{}", disable_tool_validation=True)
    for name, arguments in (("look", "{}"), ("look", '{"at": "1"}'), ("look", "{"), ("jump", "{}")):
        assert fails(name, arguments)
