"""Adapting the form of requests after an endpoint has rejected one.

Only the form changes, never what the model reads or how it samples: a rejected temperature is an error.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from propensitybench.clients.client import Client
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.options import ModelOptions

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

_Change = Callable[[ChatDialect, str, ModelOptions], ChatDialect | None]


def adapt_to(client: Client, refusal: str) -> bool:
    """Whether a client now writes its requests in another form, because of a refusal."""
    dialect = None if client.dialect is None else without_rejected(client.dialect, refusal, client.options)
    if dialect is None:
        return False
    client.dialect = dialect
    return True


def without_rejected(dialect: ChatDialect, refusal: str, options: ModelOptions) -> ChatDialect | None:
    """The dialect that avoids a rejection, with the change recorded in ``changes``; None if there is none.

    Args:
        dialect: of the rejected request.
        refusal: the endpoint's message.
        options: the sampling options.
    """
    for change in _CHANGES:
        new = change(dialect, refusal, options)
        if new is not None:
            return new
    return None


def _changed(dialect: ChatDialect, sentence: str, **fields: object) -> ChatDialect | None:
    if sentence in dialect.changes:
        return None  # tried before, without success
    return msgspec.structs.replace(dialect, **fields, changes=(*dialect.changes, sentence))


def _limit_field(dialect: ChatDialect, refusal: str, options: ModelOptions) -> ChatDialect | None:
    field = dialect.limit_field
    if options.max_tokens is None or field not in refusal or not _UNKNOWN.search(refusal):
        return None
    other = _OTHER_LIMIT[field]
    return _changed(dialect, f"the output limit is sent as {other}, not {field}", limit_field=other)


def _reasoning_wanted(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    field = "reasoning_content"
    if field not in refusal or not _MISSING.search(refusal) or field in dialect.always:
        return None
    echo = dialect.echo if field in dialect.echo else (*dialect.echo, field)
    sentence = f"{field} is sent with every assistant message"
    return _changed(dialect, sentence, echo=echo, always=(*dialect.always, field))


def _field_dropped(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    for name in dict.fromkeys((*dialect.echo, *dialect.always, *dialect.echo_in_calls)):
        if name != "content" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", refusal):
            left = {
                kind: tuple(field for field in getattr(dialect, kind) if field != name)
                for kind in ("echo", "always", "echo_in_calls")
            }
            return _changed(dialect, f"{name} of a reply is not sent back", **left)
    return None


def _extra_dropped(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    for name in dialect.extra:
        if name in refusal:
            left = {key: value for key, value in dialect.extra.items() if key != name}
            return _changed(dialect, f"{name} is not sent", extra=left)
    return None


def _content_wanted(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    if dialect.no_content == "empty text" or not _CONTENT_MISSING.search(refusal):
        return None
    sentence = "a message that has only tool calls has an empty text, not null"
    return _changed(dialect, sentence, no_content="empty text")


def _tool_name(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    if not dialect.tool_message_name and _TOOL_NAME_EMPTY.search(refusal):
        return _changed(dialect, "a tool's answer carries the tool's name", tool_message_name=True)
    if dialect.tool_message_name and _TOOL_NAME_UNKNOWN.search(refusal) and _UNKNOWN.search(refusal):
        return _changed(dialect, "a tool's answer does not carry the tool's name", tool_message_name=False)
    return None


def _parameters(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    if dialect.no_arguments == "omitted":
        if _PARAMETERS.search(refusal) and _MISSING.search(refusal):
            sentence = "a tool without arguments has an empty object as its parameters"
            return _changed(dialect, sentence, no_arguments="empty object")
        return None
    if _EMPTY_OBJECT.search(refusal):
        sentence = "a tool without arguments has no parameters"
        # Their description is where the rest of a long one goes.
        return _changed(dialect, sentence, no_arguments="omitted", description_limit=0)
    return None


def _dialect(dialect: ChatDialect, refusal: str, _: ModelOptions) -> ChatDialect | None:
    if dialect.schema == "json" and (_SCHEMA.search(refusal) or _EMPTY_OBJECT.search(refusal)):
        return _changed(dialect, "the tools' schemas are written in Gemini's dialect", schema="gemini")
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
