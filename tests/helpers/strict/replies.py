"""How providers dress a chat completion, and what Groq sends instead of a call that does not fit."""

import json
from collections.abc import Mapping
from typing import Any, Final

from helpers.strict.refusals import Json, Violation, functions, is_object, objects, signature

# Each provider's form of the ids of calls: what they begin with, and how long the rest is.
_IDS: Final[Mapping[str, tuple[str, int]]] = {
    "openai": ("call_", 24),
    "mistral": ("", 9),
    "gemini": ("function-call-", 16),
    "groq": ("fc_", 32),
    "deepseek": ("call_00_", 24),
}
# Fields that each gives a message of its own.
_FIELDS: Final[Mapping[str, Json]] = {
    "openai": {"refusal": None, "annotations": []},
    "groq": {"reasoning": "Let me see."},
    "deepseek": {"reasoning_content": "Let me see."},
}
_JSON_TYPES: Final = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def dress(provider: str, completion: dict[str, Any], request: Json) -> None:
    """Makes a plain chat completion one of a provider's."""
    name = provider.partition("-")[0]
    for _, choice in objects(completion.get("choices")):
        message = choice["message"]
        prefix, length = _IDS[name]
        for k, (_, call) in enumerate(objects(message.get("tool_calls"))):
            call["id"] = prefix + f"{len(request['messages'])}{k}".rjust(length, "0")
            if name == "gemini" and k == 0:
                call["extra_content"] = {"google": {"thought_signature": signature(call["id"])}}
            if name in ("mistral", "deepseek"):
                call["index"] = k
        message.setdefault("content", None)
        message.update(_FIELDS.get(name, {}))
        if name == "gemini":
            # It may say `stop` where it calls tools: https://discuss.ai.google.dev/tag/openai-compatibility/417
            choice["finish_reason"] = choice["finish_reason"].replace("tool_calls", "stop")
        if message["content"] is None and name in ("gemini", "groq"):
            del message["content"]
        elif name in ("mistral", "deepseek"):
            message["content"] = message["content"] or ""


def tool_use_failed(completion: Json, request: Json) -> Violation | None:
    """The error that Groq sends instead of a reply whose tool call does not fit the tools on offer.

    https://github.com/OpenHands/OpenHands/issues/10048; ``disable_tool_validation`` turns it off.
    """
    if request.get("disable_tool_validation"):
        return None
    schemas = {function["name"]: function.get("parameters", {}) for _, function in functions(request)}
    for _, choice in objects(completion.get("choices")):
        for _, call in objects(choice["message"].get("tool_calls")):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            if name in schemas and is_object(arguments) and _fits(schemas[name], json.loads(arguments)):
                continue
            text = f"tool call validation failed: parameters for tool {name} did not match schema"
            error = {"message": text, "type": "invalid_request_error", "code": "tool_use_failed"}
            failed = json.dumps({"name": name, "arguments": arguments})
            body = {"error": {**error, "failed_generation": failed}}
            return Violation("reply.tool_use_failed", text, 400, body)
    return None


def _fits(schema: Json, arguments: Json) -> bool:
    """Whether the arguments are those that a tool takes, each of its type."""
    properties = schema.get("properties", {})
    if not set(schema.get("required", ())) <= arguments.keys():
        return False
    kinds = {name: _JSON_TYPES.get(str(properties.get(name, {}).get("type")), object) for name in arguments}
    return all(isinstance(value, kinds[name]) for name, value in arguments.items())
