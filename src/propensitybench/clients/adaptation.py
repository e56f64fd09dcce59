"""Adapting the form of requests after an endpoint has rejected one.

Only the form changes, never what the model reads or how it samples: a rejected temperature is an error.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from propensitybench.clients.client import Client
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_policy import WirePolicy

_UNKNOWN: Final = re.compile(
    r"unsupported|not supported|unknown|unrecogni[sz]ed|extra_forbidden|extra inputs|not permitted"
    r"|cannot find field|not allowed|unexpected",
    re.IGNORECASE,
)
_MISSING: Final = re.compile(r"missing|required|must be (passed|set)|empty|field required", re.IGNORECASE)
_TOOL_NAME_EMPTY: Final = re.compile(r"function_response\.name|name cannot be empty", re.IGNORECASE)
_TOOL_NAME_UNKNOWN: Final = re.compile(r"tool\.name\b|property 'name'", re.IGNORECASE)
_CONTENT_MISSING: Final = re.compile(
    r"missing field .?content|'content'.{0,40}(null|None|required)|content.{0,20}valid string", re.IGNORECASE
)
_EMPTY_OBJECT: Final = re.compile(
    r"non-empty for object|object (type )?.{0,40}(without|no) properties", re.IGNORECASE
)
_PARAMETERS: Final = re.compile(r"parameters|schema", re.IGNORECASE)
_SCHEMA: Final = re.compile(
    r"function_declarations.{0,200}(type|items|anyof|any_of|properties|cannot find field)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_LIMIT: Final = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_Change = Callable[[WirePolicy, str, ModelOptions], WirePolicy | None]


def adapt_to(client: Client, refusal: str) -> bool:
    """Whether a client now writes its requests in another form, because of a refusal."""
    policy = None if client.wire is None else adapted(client.wire, refusal, client.options)
    if policy is None:
        return False
    client.wire = policy
    return True


def adapted(policy: WirePolicy, refusal: str, options: ModelOptions) -> WirePolicy | None:
    """The policy that avoids a rejection, with the change recorded in ``adapted``; None if there is none.

    Args:
        policy: of the rejected request.
        refusal: the endpoint's message.
        options: the sampling options.
    """
    for change in _CHANGES:
        new = change(policy, refusal, options)
        if new is not None:
            return new
    return None


def _changed(policy: WirePolicy, sentence: str, **fields: object) -> WirePolicy | None:
    if sentence in policy.adapted:
        return None  # tried before, without success
    return msgspec.structs.replace(policy, **fields, adapted=(*policy.adapted, sentence))


def _limit_field(policy: WirePolicy, refusal: str, options: ModelOptions) -> WirePolicy | None:
    field = policy.limit_field
    if options.max_tokens is None or field not in refusal or not _UNKNOWN.search(refusal):
        return None
    other = _OTHER_LIMIT[field]
    return _changed(policy, f"the output limit is sent as {other}, not {field}", limit_field=other)


def _reasoning_wanted(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    field = "reasoning_content"
    if field not in refusal or not _MISSING.search(refusal) or field in policy.always:
        return None
    echo = policy.echo if field in policy.echo else (*policy.echo, field)
    sentence = f"{field} is sent with every assistant message"
    return _changed(policy, sentence, echo=echo, always=(*policy.always, field))


def _field_dropped(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    for name in dict.fromkeys((*policy.echo, *policy.always, *policy.echo_in_calls)):
        if name != "content" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", refusal):
            left = {
                kind: tuple(field for field in getattr(policy, kind) if field != name)
                for kind in ("echo", "always", "echo_in_calls")
            }
            return _changed(policy, f"{name} of a reply is not sent back", **left)
    return None


def _extra_dropped(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    for name in policy.extra:
        if name in refusal:
            left = {key: value for key, value in policy.extra.items() if key != name}
            return _changed(policy, f"{name} is not sent", extra=left)
    return None


def _content_wanted(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    if policy.no_content == "empty text" or not _CONTENT_MISSING.search(refusal):
        return None
    sentence = "a message that has only tool calls has an empty text, not null"
    return _changed(policy, sentence, no_content="empty text")


def _tool_name(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    if not policy.tool_message_name and _TOOL_NAME_EMPTY.search(refusal):
        return _changed(policy, "a tool's answer carries the tool's name", tool_message_name=True)
    if policy.tool_message_name and _TOOL_NAME_UNKNOWN.search(refusal) and _UNKNOWN.search(refusal):
        return _changed(policy, "a tool's answer does not carry the tool's name", tool_message_name=False)
    return None


def _parameters(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    if policy.no_arguments == "omitted":
        if _PARAMETERS.search(refusal) and _MISSING.search(refusal):
            sentence = "a tool without arguments has an empty object as its parameters"
            return _changed(policy, sentence, no_arguments="empty object")
        return None
    if _EMPTY_OBJECT.search(refusal):
        sentence = "a tool without arguments has no parameters"
        # Their description is where the rest of a long one goes.
        return _changed(policy, sentence, no_arguments="omitted", description_limit=0)
    return None


def _dialect(policy: WirePolicy, refusal: str, _: ModelOptions) -> WirePolicy | None:
    if policy.schema == "json" and (_SCHEMA.search(refusal) or _EMPTY_OBJECT.search(refusal)):
        return _changed(policy, "the tools' schemas are written in Gemini's dialect", schema="gemini")
    return None


_CHANGES: Final[tuple[_Change, ...]] = (
    _limit_field,
    _reasoning_wanted,
    _extra_dropped,
    _field_dropped,
    _content_wanted,
    _tool_name,
    _parameters,
    _dialect,
)
