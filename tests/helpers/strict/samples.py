"""Requests that the fakes accept, for tests to change."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from helpers.strict.refusals import signature

GONE: Final = object()
Edits = Mapping[str, Any]

ID: Final = "abcdefghi"
MODELS: Final = {
    "openai": "gpt-4.1",
    "mistral": "mistral-large-latest",
    "gemini": "gemini-3-pro-preview",
    "groq": "openai/gpt-oss-120b",
    "deepseek": "deepseek-v4-pro",
    "deepseek-v3.2": "deepseek-reasoner",
    "deepseek-r1": "deepseek-reasoner",
}
LOOK: Final = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
CALL: Final = {"id": ID, "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
TOOL: Final = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": LOOK}}
SIGNED: Final = {"google": {"thought_signature": signature(ID)}}


def chat(provider: str) -> dict[str, Any]:
    """A request that its provider accepts: a tool was called, and has answered."""
    assistant: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    answer = {"role": "tool", "tool_call_id": ID, "content": "a tree"}
    if provider == "gemini":
        answer["name"] = "look"
        assistant["tool_calls"] = [{**CALL, "extra_content": SIGNED}]
    if provider in ("deepseek", "deepseek-v3.2"):
        assistant["reasoning_content"] = "Let me see."
    opening = [{"role": "system", "content": "You look."}, {"role": "user", "content": "Look."}]
    messages = [*opening, assistant, answer]
    body = {"model": MODELS[provider], "messages": messages, "tools": [TOOL]}
    return copy.deepcopy(body)


def edited(body: dict[str, Any], edits: Edits) -> dict[str, Any]:
    """The request after changes at some paths; one past the end of a list appends."""
    body = copy.deepcopy(body)
    for path, value in edits.items():
        *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
        at: Any = body
        for part in way:
            at = at[part]
        if value is GONE:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = copy.deepcopy(value)
    return body
