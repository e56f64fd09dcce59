"""Anthropic's Messages API in terms of chat completions, so that one behaviour serves both.

Shapes: https://docs.claude.com/en/api/messages and https://docs.claude.com/en/api/messages-streaming
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from helpers.strict.refusals import Json, objects

_STOPS: Final[Mapping[Any, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_THOUGHT: Final = "Let me see."


def as_chat(body: Json) -> dict[str, Any]:
    """A request for a message as one for a chat completion."""
    messages: list[dict[str, Any]] = []
    if body.get("system"):
        messages.append({"role": "system", "content": _text({"content": body["system"]})})
    for _, message in objects(body.get("messages")):
        messages += _chat_messages(message)
    request = {"model": body.get("model"), "max_tokens": body.get("max_tokens"), "messages": messages}
    tools = [_chat_tool(tool) for _, tool in objects(body.get("tools"))]
    return {**request, "tools": tools} if tools else request


def blocks(message: Json) -> list[tuple[int, dict[str, Any]]]:
    """The content of a message as numbered blocks; a string is one text block."""
    content = message.get("content")
    return [(0, {"type": "text", "text": content})] if isinstance(content, str) else objects(content)


def _text(message: Json) -> str:
    return "\n".join(str(block["text"]) for _, block in blocks(message) if block.get("type") == "text")


def _chat_tool(tool: Json) -> dict[str, Any]:
    function = {"name": tool.get("name"), "description": tool.get("description", "")}
    return {"type": "function", "function": {**function, "parameters": tool.get("input_schema")}}


def _chat_messages(message: Json) -> Iterator[dict[str, Any]]:
    calls = []
    for _, block in blocks(message):
        if block["type"] == "tool_result":
            content = _text({"content": block.get("content") or ""})
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}
        if block["type"] == "tool_use":
            function = {"name": block["name"], "arguments": json.dumps(block["input"])}
            calls.append({"id": block["id"], "type": "function", "function": function})
    text = _text(message)
    if calls:
        yield {"role": message["role"], "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": message["role"], "content": text}


def as_message(completion: Json, body: Json) -> dict[str, Any]:
    """A chat completion as a message; arguments that are not a JSON object become ``{}``."""
    _, choice = objects(completion.get("choices"))[0]
    reply = choice["message"]
    content: list[dict[str, Any]] = []
    if (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        content.append({"type": "thinking", "thinking": _THOUGHT, "signature": "sig"})
    if str(reply.get("content") or "").strip():
        content.append({"type": "text", "text": reply["content"], "citations": None})
    turn = len(objects(body.get("messages")))
    for k, call in objects(reply.get("tool_calls")):
        function = call["function"]
        made = {"type": "tool_use", "id": f"toolu_01{turn:02}{k}"}
        content.append({**made, "name": function.get("name"), "input": _object(function.get("arguments"))})
    usage = completion.get("usage") or {}
    return {
        "id": f"msg_01{turn:02}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": content,
        "stop_reason": _STOPS.get(choice.get("finish_reason"), "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "service_tier": "standard",
        },
    }


def _object(arguments: Any) -> dict[str, Any]:
    try:
        found = json.loads(arguments)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def as_events(message: Json) -> bytes:
    """A message as the events of a stream."""
    start = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for k, block in objects(message["content"]):
        events += _block_events(k, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    events += [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _block_events(k: int, block: Json) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        begun: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "thinking":
        begun = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        begun = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield {"type": "content_block_start", "index": k, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": k, "delta": delta}
    yield {"type": "content_block_stop", "index": k}
