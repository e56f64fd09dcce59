"""Differences between OpenAI-compatible endpoints in the form of requests."""

from typing import Any, Literal

import msgspec


class ChatDialect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How requests to an endpoint are written. The content that a model reads does not depend on it.

    The defaults are what most endpoints accept. Recorded in the manifest when a run is created.

    Attributes:
        name: of the dialect, for messages.
        echo: fields of a reply's message that go back with it: reasoning and signatures. An allow-list:
            all other fields stay in the journal. ``content`` stands for content that came in chunks.
        echo_in_calls: the same for the fields of a tool call.
        always: fields that every assistant message must have; empty where the reply had none.
        no_content: what stands in a message that has only tool calls.
        limit_field: the name of the limit on output tokens.
        tool_message_name: whether a tool's answer carries the tool's name.
        schema: dialect of the tools' parameters: JSON Schema, or the subset that Gemini knows.
        no_arguments: how the parameters of a tool without arguments look.
        description_limit: longest description of a tool, in characters; 0 is without limit.
        call_id: regular expression for the ids of tool calls; an id that does not match is replaced.
        extra: fields of every request body.
        changes: what the preflight changed, one sentence each.
        short_names: tools of the run whose names are shortened on the wire, with the short form.
        split_descriptions: tools of the run whose descriptions continue in their parameters.
    """

    name: str = "compatible"
    echo: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
    echo_in_calls: tuple[str, ...] = ("extra_content",)
    always: tuple[str, ...] = ()
    no_content: Literal["null", "empty text"] = "null"
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    tool_message_name: bool = False
    schema: Literal["json", "gemini"] = "json"
    no_arguments: Literal["empty object", "omitted"] = "empty object"
    description_limit: int = 1024
    call_id: str = ""
    extra: dict[str, Any] = {}
    changes: tuple[str, ...] = ()
    short_names: dict[str, str] = {}
    split_descriptions: tuple[str, ...] = ()


DEFAULT_DIALECT = ChatDialect()
"""The dialect for an unknown endpoint."""
