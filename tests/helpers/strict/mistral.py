"""What Mistral's chat completions refuse, and how their replies look.

API reference: https://docs.mistral.ai/api. Order, names and ids are checked as in
https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from helpers.strict.common import (
    NO_HEADERS,
    Flaw,
    Json,
    Violation,
    Where,
    calls_of,
    dicts,
    extra,
    function_of,
    functions_of,
    matches,
    messages_of,
    says_nothing,
    twice,
    unanswered,
    unfit_arguments,
    with_ids,
    words,
)

# The API reference; `random_seed` instead of `seed`, and no `max_completion_tokens`
# (https://github.com/editor-code-assistant/eca/issues/231). Some of the newest models take a
# `reasoning_effort`, the others do not, so strict.
_TOP: Final = words(
    "frequency_penalty max_tokens messages metadata model n parallel_tool_calls prediction presence_penalty "
    "prompt_mode random_seed response_format safe_prompt stop stream temperature tool_choice tools "
    "top_p"
)
# API reference. `name` and `tool_calls` of a user: https://github.com/Gage-Technologies/mistral-go/pull/2,
# `reasoning_content`: https://github.com/charmbracelet/crush/issues/1590,
# `metadata`: https://github.com/BerriAI/litellm/issues/30882
_MESSAGE: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "name", "tool_call_id"}),
}
_NAME: Final = r"[a-zA-Z0-9_-]{1,64}"
_ID: Final = r"[a-zA-Z0-9]{9}"
_ORDER: Final = "invalid_request_message_order"
_AFTER: Final[Mapping[str, tuple[str, ...]]] = {
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user", "tool"),
    "tool": ("assistant", "tool"),
}


def violations(body: Json, _headers: Mapping[str, str] = NO_HEADERS) -> list[Violation]:
    """What Mistral refuses in a request."""
    unfit = [*_unknown(body), *_tools(body)]
    if not unfit:  # the rest is looked at once the request has the right form
        unfit = [*_order(body), *_calls(body)]
    return [shaped(flaw) for flaw in unfit]


def shaped(flaw: Flaw) -> Violation:
    """A flaw as Mistral's error; of the framework's form, if it is one of form (422)."""
    message: Any = flaw.message
    kind, number = "invalid_request_error", None
    if flaw.status == 422:
        # https://github.com/editor-code-assistant/eca/issues/231
        detail = {
            "type": flaw.code,
            "loc": ["body", *flaw.where],
            "msg": flaw.message,
            "input": flaw.given,
        }
        message = {"detail": [detail]}
    elif flaw.code:
        # codes: https://github.com/datapizza-labs/datapizza-ai/issues/98 and
        # https://github.com/nearai/ironclaw/issues/1241
        kind, number = flaw.code, {_ORDER: "3230", "invalid_function_call": "3280"}.get(flaw.code)
    body = {"object": "error", "message": message, "type": kind, "param": None, "code": number}
    return Violation(flaw.rule, flaw.message, flaw.status, body)


def _forbidden(rule: str, given: Json, name: str, where: Where) -> Flaw:
    return Flaw(rule, "Extra inputs are not permitted", (*where, name), "extra_forbidden", 422, given[name])


def _unknown(body: Json) -> Iterator[Flaw]:
    # https://github.com/mistralai/platform-docs-public/issues/7
    for name in extra(body, _TOP):
        yield _forbidden("top.unknown", body, name, ())
    for i, message in messages_of(body):
        role = str(message.get("role"))
        if role not in _MESSAGE:
            text = f"Input tag '{role}' found using 'role' does not match any of the expected tags: "
            text += "'assistant', 'system', 'tool', 'user'"  # general knowledge
            yield Flaw("messages.role", text, ("messages", i), "union_tag_invalid", 422, role)
            continue
        for name in extra(message, _MESSAGE[role]):
            yield _forbidden("messages.unknown", message, name, ("messages", i, role))
        for k, call in calls_of(message):
            at: Where = ("messages", i, role, "tool_calls", k)
            for name in extra(call, {"id", "type", "function", "index"}):  # API reference
                yield _forbidden("calls.unknown", call, name, at)
            for name in extra(function_of(call), {"name", "arguments"}):  # API reference
                yield _forbidden("calls.unknown", function_of(call), name, (*at, "function"))


def _tools(body: Json) -> Iterator[Flaw]:
    if body.get("tools") == []:
        # Not known of Mistral; OpenAI, DeepSeek and vLLM refuse it, so strict.
        text = "List should have at least 1 item after validation, not 0"
        yield Flaw("tools.empty", text, ("tools",), "too_short", 422, [])
    for i, function in functions_of(body):
        at: Where = ("tools", i, "function")
        # https://github.com/mistralai/client-python/issues/91
        for name in extra(function, {"name", "description", "parameters", "strict"}):
            yield _forbidden("tools.unknown", function, name, at)
        if not isinstance(function.get("parameters"), dict):
            # https://github.com/Mirascope/mirascope/issues/961
            yield Flaw("tools.parameters", "Field required", (*at, "parameters"), "missing", 422, function)
        if not matches(_NAME, function.get("name")):
            # the validator
            text = f"Function name was {function.get('name')} but must be a-z, A-Z, 0-9, "
            yield Flaw("tools.name", text + "or contain underscores and dashes, with a maximum length of 64.")
    for name in twice(function.get("name") for _, function in functions_of(body)):
        # Not known of Mistral; Anthropic, DeepSeek and Gemini refuse it, so strict.
        yield Flaw("tools.twice", f"Duplicate tool name: {name}")


def _order(body: Json) -> Iterator[Flaw]:
    messages = messages_of(body)
    if not messages:
        yield Flaw(
            "messages.empty", "Conversation must have at least one message", (), _ORDER
        )  # the validator
        return
    before = ""
    for _, message in messages:
        role = str(message["role"])
        # The API itself lets `user` follow `user` (the validator), but the chat templates of Mistral's open
        # models do not (https://github.com/charmbracelet/crush/issues/279), so strict. `user` after `tool`
        # is refused by both: https://github.com/avante-corp/avante.nvim/issues/2562
        if before and role not in _AFTER[before]:
            text = f"Unexpected role '{role}' after role '{before}'"
            yield Flaw("order.roles", text, (), _ORDER)
        before = role
    if messages[0][1]["role"] not in ("system", "user"):
        text = "Conversation must start with a user message or system message"  # the validator
        yield Flaw("order.start", text, (), _ORDER)
    if before not in ("user", "tool") and not messages[-1][1].get("prefix"):
        # https://github.com/0xPlaygrounds/rig/pull/1130
        text = "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
        yield Flaw("order.last", text + before, (), _ORDER)
    if any(unanswered(body)):
        # https://github.com/mistralai/client-ts/issues/106
        text = "Not the same number of function calls and responses"
        yield Flaw("order.unanswered", text, (), _ORDER)


def _calls(body: Json) -> Iterator[Flaw]:
    for i, message in messages_of(body):
        if says_nothing(message):
            # https://github.com/OpenHands/OpenHands/issues/8685
            text = "Assistant message must have either content or tool_calls, but not none."
            yield Flaw("messages.content", text, ("messages", i), "invalid_request_assistant_message")
        ids = [call.get("id") for _, call in calls_of(message)]
        if message["role"] == "tool":
            ids.append(message.get("tool_call_id"))
        for given in ids:
            if not matches(_ID, given):
                # https://github.com/nearai/ironclaw/issues/1241
                text = f"Tool call id was {given} but must be a-z, A-Z, 0-9, with a length of 9."
                yield Flaw("calls.id", text, ("messages", i), "invalid_function_call")
        for _, call in calls_of(message):
            if not matches(_NAME, function_of(call).get("name")):
                # the validator
                text = f"Function name was {function_of(call).get('name')} but must be a-z, A-Z, 0-9, "
                text += "or contain underscores and dashes, with a maximum length of 64."
                yield Flaw("calls.name", text, ("messages", i), "invalid_function_call")
    for where in unfit_arguments(body):
        # general knowledge: its tokenizer reads them as JSON
        yield Flaw(
            "calls.arguments", "Invalid JSON in function call arguments", where, "invalid_function_call"
        )


def dress(completion: dict[str, Any], request: Json) -> None:
    """Make a plain chat completion one of Mistral's.

    Magistral's content is a list of a ``thinking`` and a ``text`` chunk:
    https://github.com/spring-projects/spring-ai/pull/5020
    """
    for _, choice in dicts(completion.get("choices")):
        message = choice["message"]
        with_ids(message, request, "", 9)
        for k, call in calls_of(message):
            call.pop("type", None)  # general knowledge: it may be missing, and there is an index
            call["index"] = k
        message.setdefault("tool_calls", None)
        message["content"] = message.get("content") or ""
        if "magistral" in str(request.get("model")):
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}
            text = [{"type": "text", "text": message["content"]}] if message["content"] else []
            message["content"] = [thinking, *text]
