"""What Anthropic's Messages API refuses.

API reference: https://docs.claude.com/en/api/messages
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from helpers.strict.common import (
    NO_HEADERS,
    Flaw,
    Json,
    Violation,
    Where,
    dicts,
    dotted,
    extra,
    matches,
    messages_of,
    subschemas,
    twice,
    words,
)

# API reference, with what the SDK's beta path adds
_TOP: Final = words(
    "cache_control container context_management mcp_servers max_tokens messages metadata model output_config "
    "output_format service_tier stop_sequences stream system temperature thinking tool_choice tools top_k "
    "top_p"
)
_BLOCK: Final[Mapping[str, frozenset[str]]] = {  # API reference
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
}
_WITHOUT_RESULT: Final = "`tool_use` ids were found without `tool_result` blocks immediately after: "
_TYPES: Final = {400: "invalid_request_error", 401: "authentication_error"}


def violations(body: Json, headers: Mapping[str, str] = NO_HEADERS) -> list[Violation]:
    """What Anthropic refuses in a request; headers are looked at if there are any."""
    flaws = [
        *_headers(headers),
        *_of_newest_version(body, headers),
        *_options(body),
        *_system(body),
        *_messages(body),
        *_order(body),
        *_thinking(body),
        *_tools(body),
    ]
    return [shaped(flaw) for flaw in flaws]


def shaped(flaw: Flaw) -> Violation:
    """A flaw as Anthropic's error: https://github.com/anthropics/claude-code/issues/59812"""
    message = f"{dotted(flaw.where)}: {flaw.message}" if flaw.where else flaw.message
    error = {"type": _TYPES[flaw.status], "message": message}
    body = {"type": "error", "error": error, "request_id": "req_strict"}
    return Violation(flaw.rule, message, flaw.status, body)


def blocks(message: Json) -> list[tuple[int, dict[str, Any]]]:
    """The content of a message as numbered blocks; a string is one text block."""
    content = message.get("content")
    return [(0, {"type": "text", "text": content})] if isinstance(content, str) else dicts(content)


def _of_type(message: Json, kind: str) -> list[dict[str, Any]]:
    return [block for _, block in blocks(message) if block.get("type") == kind]


def _headers(headers: Mapping[str, str]) -> Iterator[Flaw]:
    given = {name.lower() for name in headers}
    if given and not given & {"x-api-key", "authorization"}:
        # https://docs.claude.com/en/api/overview
        yield Flaw("headers.key", "x-api-key header is required", status=401)
    if given and "anthropic-version" not in given:
        # https://docs.claude.com/en/api/versioning
        yield Flaw("headers.version", "anthropic-version: header is required")


def _of_newest_version(body: Json, headers: Mapping[str, str]) -> Iterator[Flaw]:
    """What is refused since version 2026-10-21, which newer SDKs ask for by themselves.

    https://platform.claude.com/docs/en/api/versioning; the wording is ours.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if given.get("anthropic-version", "") < "2026-10-21":
        return
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            yield Flaw("version.sampling", "Extra inputs are not permitted", (name,))
    for i, message in messages_of(body):
        if message.get("role") == "assistant" and _of_type(message, "document"):
            yield Flaw("version.document", "document blocks are not permitted here", ("messages", i))
        if message.get("role") == "user" and any(b.get("citations") for b in _of_type(message, "text")):
            yield Flaw("version.citations", "citations are not permitted here", ("messages", i))


def _options(body: Json) -> Iterator[Flaw]:
    for name in extra(body, _TOP):
        # general knowledge; as in https://github.com/anthropics/claude-code/issues/4378
        yield Flaw("top.unknown", "Extra inputs are not permitted", (name,))
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield Flaw("top.missing", "Field required", (name,))  # API reference
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and not 0 <= temperature <= 1:
        yield Flaw("options.temperature", "range: 0..1", ("temperature",))  # API reference
    if temperature is not None and body.get("top_p") is not None:
        # general knowledge, of Claude 4.1 and later; strict
        text = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        yield Flaw("options.top_p", text)


def _messages(body: Json) -> Iterator[Flaw]:
    messages = messages_of(body)
    if body.get("messages") == []:
        yield Flaw("messages.empty", "at least one message is required", ("messages",))  # general knowledge
    for n, (i, message) in enumerate(messages):
        role = message.get("role")
        if role not in ("user", "assistant"):
            # API reference: there is no system role, but a field of the request
            text = f'Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, not '
            yield Flaw("messages.role", text + '"system" as an input message role.', ("messages",))
        for name in extra(message, {"role", "content"}):
            yield Flaw("messages.unknown", "Extra inputs are not permitted", ("messages", i, name))
        is_final_assistant = role == "assistant" and n == len(messages) - 1
        if not message.get("content") and not is_final_assistant:
            # https://github.com/glowingjade/obsidian-smart-composer/pull/156
            text = "all messages must have non-empty content except for the optional final assistant message"
            yield Flaw("messages.content", text, ("messages", i))
        elif message.get("content"):
            yield from _blocks(i, message)
        texts = _of_type(message, "text")
        if is_final_assistant and texts and str(texts[-1].get("text")) != str(texts[-1].get("text")).rstrip():
            # https://github.com/crewAIInc/crewAI/pull/4542
            text = "final assistant content cannot end with trailing whitespace"
            yield Flaw("messages.trailing", text, ("messages",))


def _system(body: Json) -> Iterator[Flaw]:
    for k, block in dicts(body.get("system")):
        if not str(block.get("text")).strip():
            yield Flaw("messages.text", "text content blocks must be non-empty", ("system", k))  # as there


def _blocks(i: int, message: Json) -> Iterator[Flaw]:
    for k, block in blocks(message):
        at: Where = ("messages", i, "content", k)
        kind = str(block.get("type"))
        if kind not in _BLOCK:
            text = f"Input tag '{kind}' found using 'type' does not match any of the expected tags"
            yield Flaw("blocks.type", text, at)  # general knowledge
            continue
        for name in extra(block, _BLOCK[kind]):
            # https://github.com/anthropics/claude-code/issues/4378
            yield Flaw("blocks.unknown", "Extra inputs are not permitted", (*at, kind, name))
        words = block.get("text")
        if kind == "text" and not words:
            # https://github.com/anthropics/claude-code/issues/59812
            yield Flaw("messages.text", "text content blocks must be non-empty", ("messages",))
        elif kind == "text" and not str(words).strip():
            # general knowledge
            yield Flaw("messages.text", "text content blocks must contain non-whitespace text", ("messages",))
        if kind == "tool_use" and not isinstance(block.get("input"), dict):
            yield Flaw(
                "calls.arguments", "Input should be a valid dictionary", (*at, kind, "input")
            )  # general
        for name in ("id", "tool_use_id"):
            if name in block and not matches(r"[a-zA-Z0-9_-]+", block[name]):
                text = "String should match pattern '^[a-zA-Z0-9_-]+$'"  # general knowledge
                yield Flaw("calls.id", text, (*at, kind, name))


def _order(body: Json) -> Iterator[Flaw]:
    messages = messages_of(body)
    if messages and messages[0][1].get("role") != "user":
        # general knowledge
        yield Flaw("order.start", 'first message must use the "user" role', ("messages",))
    awaited: list[str] = []
    for i, message in messages:
        results = [str(block.get("tool_use_id")) for block in _of_type(message, "tool_result")]
        missing = [given for given in awaited if given not in results]
        if missing:
            # https://github.com/anthropics/claude-code/issues/8210
            text = f"{_WITHOUT_RESULT}{', '.join(missing)}. Each `tool_use` block must have a corresponding "
            text += "`tool_result` block in the next message."
            yield Flaw("order.unanswered", text, ("messages", i - 1))
        stray = [given for given in results if given not in awaited]
        if stray:
            # https://github.com/anthropics/claude-code/issues/64383 (the same, of a server's tool)
            text = f"unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(stray)}. Each "
            text += "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            yield Flaw("order.stray", text, ("messages", i, "content", 0))
        kinds = [block.get("type") for _, block in blocks(message)]
        if "tool_result" in kinds and "text" in kinds[: len(kinds) - kinds[::-1].index("tool_result")]:
            # https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use: results come first
            text = "tool_result blocks must come before any text in the content of a user message"
            yield Flaw("order.results_first", text, ("messages", i))
        awaited = [str(block.get("id")) for block in _of_type(message, "tool_use")]
    if awaited:
        text = f"{_WITHOUT_RESULT}{', '.join(awaited)}."
        yield Flaw("order.unanswered", text, ("messages", len(messages) - 1))
    for name in twice(b.get("id") for _, message in messages for b in _of_type(message, "tool_use")):
        yield Flaw(
            "calls.twice", f"`tool_use` ids must be unique: {name}", ("messages",)
        )  # general knowledge


def is_thinking(body: Json) -> bool:
    """Whether thinking is asked for."""
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")


def _thinking(body: Json) -> Iterator[Flaw]:
    for i, message in messages_of(body):
        kinds = [block.get("type") for _, block in blocks(message)]
        if message.get("role") == "assistant" and kinds and kinds[-1] in ("thinking", "redacted_thinking"):
            # https://github.com/NousResearch/hermes-agent/pull/13010
            yield Flaw(
                "thinking.last",
                "The final block in an assistant message cannot be `thinking`",
                ("messages", i),
            )
        for block in _of_type(message, "thinking"):
            if block.get("signature") != signature(str(block.get("thinking"))):
                # https://docs.claude.com/en/docs/build-with-claude/extended-thinking: come back as they were
                text = "Invalid `signature` in `thinking` block"
                yield Flaw("thinking.signature", text, ("messages", i, "content", 0))
    if is_thinking(body):
        yield from _while_thinking(body, body["thinking"])


def _while_thinking(body: Json, thinking: Json) -> Iterator[Flaw]:
    # https://docs.claude.com/en/docs/build-with-claude/extended-thinking, of all but the messages
    budget = thinking.get("budget_tokens")
    if thinking["type"] == "enabled" and (not isinstance(budget, int) or budget < 1024):
        text = "Input should be greater than or equal to 1024"
        yield Flaw("thinking.budget", text, ("thinking", "enabled", "budget_tokens"))
    elif isinstance(budget, int) and budget >= body.get("max_tokens", 0):
        yield Flaw("thinking.budget", "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature") not in (None, 1):
        yield Flaw("thinking.temperature", "`temperature` may only be set to 1 when thinking is enabled.")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield Flaw("thinking.tool_choice", "Thinking may not be enabled when tool_choice forces tool use.")
    asked = [(i, m) for i, m in messages_of(body) if m.get("role") == "assistant" and _of_type(m, "tool_use")]
    last = messages_of(body)[-1:]
    if asked and last and _of_type(last[0][1], "tool_result"):
        i, message = asked[-1]
        found = blocks(message)[0][1].get("type")
        if found not in ("thinking", "redacted_thinking"):
            # https://github.com/anomalyco/opencode/issues/3077; when it is "adaptive": not certain, so strict
            text = f"Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is "
            text += "enabled, a final `assistant` message must start with a thinking block."
            yield Flaw("thinking.missing", text, ("messages", i, "content", 0, "type"))


def signature(thinking: str) -> str:
    """The signature of a thinking block of this fake."""
    return f"sig-{len(thinking)}"


def _tools(body: Json) -> Iterator[Flaw]:
    for i, tool in dicts(body.get("tools")):
        if tool.get("type") not in (None, "custom"):
            continue  # tools of Anthropic's own
        at: Where = ("tools", i, "custom")
        for name in extra(tool, {"type", "name", "description", "input_schema", "cache_control", "strict"}):
            yield Flaw("tools.unknown", "Extra inputs are not permitted", (*at, name))  # API reference
        if not matches(r"[a-zA-Z0-9_-]{1,64}", tool.get("name")):
            # https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
            text = "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
            yield Flaw("tools.name", text, (*at, "name"))
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            yield Flaw("tools.parameters", "Field required", (*at, "input_schema"))  # API reference
        elif schema.get("type") != "object":
            yield Flaw(
                "tools.root", "Input should be 'object'", (*at, "input_schema", "type")
            )  # API reference
        else:
            yield from _schema(schema, at)
    for name in twice(tool.get("name") for _, tool in dicts(body.get("tools"))):
        yield Flaw("tools.twice", f"Tool names must be unique: {name}", ("tools",))  # general knowledge


def _schema(schema: Json, at: Where) -> Iterator[Flaw]:
    if any(name in schema for name in ("oneOf", "anyOf", "allOf")):
        # general knowledge
        text = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        yield Flaw("tools.root", text, (*at, "input_schema"))
    for where, inside in subschemas(schema):
        if not isinstance(inside.get("required", []), list):
            # general knowledge
            text = "JSON schema is invalid. It must match JSON Schema draft 2020-12"
            yield Flaw("schema.invalid", text, (*at, "input_schema", *where))
