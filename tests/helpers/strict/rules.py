"""What providers refuse in a request: the rules that our client keeps to, or adapts to after a refusal.

`PROVIDERS` says what each takes, `SAYS` with what words it refuses the rest. "Strict" marks what is refused
here because other providers refuse it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Provider(NamedTuple):
    """What one provider takes; None is anything.

    Attributes:
        top, call, function: fields of the request, of a tool call, of a function on offer.
        message: fields of a message, by role.
        call_id: regular expression for the ids of tool calls.
        after: the roles that may follow a role; the reply is the assistant's.
        parameters: whether a function must have some.
    """

    top: str | None = None
    message: Mapping[str, str] | None = None
    call: str | None = "id type function"
    function: str | None = "name description parameters strict"
    call_id: str = ".*"
    after: Mapping[str, str] = {}
    parameters: bool = False


PROVIDERS: Final[Mapping[str, Provider]] = {
    # https://platform.openai.com/docs/api-reference/chat/create; `annotations` and the `name` of a tool
    # message because OpenAI's own examples send them; the length of an id: https://github.com/vercel/ai/issues/5171
    "openai": Provider(
        top="audio frequency_penalty logit_bias logprobs max_completion_tokens max_tokens messages metadata "
        "modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key "
        "reasoning_effort response_format safety_identifier seed service_tier stop store stream "
        "stream_options temperature tool_choice tools top_logprobs top_p user verbosity",
        message={
            "system": "role content name",
            "user": "role content name",
            "assistant": "role content name refusal audio annotations tool_calls",
            "tool": "role content tool_call_id name",
        },
        call_id=".{1,40}",
    ),
    # https://docs.mistral.ai/api; ids and order as in mistral-common's validator. That `user` may not follow
    # `user` is of its open models' chat templates: https://github.com/charmbracelet/crush/issues/279
    "mistral": Provider(
        top="frequency_penalty max_tokens messages metadata model n parallel_tool_calls prediction "
        "presence_penalty prompt_mode random_seed response_format safe_prompt stop stream temperature "
        "tool_choice tools top_p",
        message={
            "system": "role content",
            "user": "role content",
            "assistant": "role content tool_calls prefix",
            "tool": "role content name tool_call_id",
        },
        call="id type function index",
        call_id="[a-zA-Z0-9]{9}",
        after={"system": "user", "user": "assistant", "assistant": "user tool", "tool": "assistant tool"},
        parameters=True,  # https://github.com/Mirascope/mirascope/issues/961
    ),
    # https://ai.google.dev/gemini-api/docs/openai: translated to an API that knows no unknown fields
    "gemini": Provider(
        top="extra_body max_completion_tokens max_tokens messages model n parallel_tool_calls "
        "reasoning_effort response_format stop stream stream_options temperature tool_choice tools top_p",
        message=dict.fromkeys(
            ("system", "user", "assistant", "tool"),
            "role content name tool_calls tool_call_id extra_content refusal",
        ),
        call="id type function extra_content index",
    ),
    # https://console.groq.com/docs/api-reference and https://console.groq.com/docs/openai (no `name`)
    "groq": Provider(
        top="disable_tool_validation frequency_penalty include_reasoning max_completion_tokens max_tokens "
        "messages metadata model n parallel_tool_calls presence_penalty reasoning_effort reasoning_format "
        "response_format seed service_tier stop store stream stream_options temperature tool_choice tools "
        "top_p user",
        message={
            "system": "role content",
            "user": "role content",
            "assistant": "role content reasoning tool_calls",
            "tool": "role content tool_call_id",
        },
    ),
    # https://api-docs.deepseek.com/api/create-chat-completion. Unknown fields are left unread. What becomes
    # of `reasoning_content` changed twice: see `messages.reasoning`.
    "deepseek": Provider(call=None, function=None, parameters=True),
    "deepseek-v3.2": Provider(call=None, function=None, parameters=True),
    "deepseek-r1": Provider(
        call=None,
        function=None,
        after={
            "system": "user",
            "user": "assistant",
            "assistant": "user tool",
            "tool": "assistant tool user",
        },
        parameters=True,
    ),
}
"""``deepseek`` is as it is now; the others of that name are as it was."""

_GOOGLE: Final = "* GenerateContentRequest.{at}"
_FIELD: Final = {
    "openai": "Unknown parameter: '{path}'.",  # https://github.com/teabranch/open-responses-server/issues/41
    "mistral": "Extra inputs are not permitted",  # https://github.com/mistralai/platform-docs-public/issues/7
    # https://github.com/SuzumiyaAkizuki/ComfyUI-NewBie-LLM-Formatter/issues/3
    "gemini": "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field.",
    # https://github.com/musistudio/claude-code-router/pull/1204
    "groq": "'{path}' : property '{name}' is unsupported",
}

SAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "top.unknown": _FIELD,
    "messages.unknown": _FIELD,
    "calls.unknown": _FIELD,
    "tools.unknown": _FIELD,
    "options.limit": {  # https://github.com/devnullvoid/dms-ai-assistant/issues/12
        "openai": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    },
    "options.sampling": {  # https://github.com/langchain-ai/langchain/pull/35424
        "openai": "Unsupported value: '{name}' does not support {value} with this model. "
        "Only the default (1) value is supported."
    },
    "options.effort": {  # https://github.com/davidmigloz/langchain_dart/issues/712
        "openai": "Unrecognized request argument supplied: reasoning_effort"
    },
    "options.effort_with_tools": {  # https://github.com/BerriAI/litellm/pull/34569
        "openai": "Function tools with reasoning_effort are not supported for {model} in "
        "/v1/chat/completions. "
        "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
    },
    "messages.content": {
        "openai": "Invalid value for 'content': expected a string, got null.",
        # https://github.com/OpenHands/OpenHands/issues/8685
        "mistral": "Assistant message must have either content or tool_calls, but not none.",
        # https://github.com/boldsoftware/sketch/issues/68
        "gemini": _GOOGLE + ".data: required oneof field 'data' must have one initialized field",
        "groq": "'{path}.content' : property is missing",
        "deepseek": "Failed to deserialize the JSON body into the target type: {path}: missing field "
        "`content`",
    },
    "messages.tool_name": {  # https://github.com/NousResearch/hermes-agent/pull/19728
        "gemini": _GOOGLE + ".function_response.name: Name cannot be empty."
    },
    "messages.reasoning": {
        "groq": "{path}.reasoning: reasoning is not supported with this model",  # vercel/ai, pull 8057
        # https://github.com/mnfst/modelparams.dev/issues/29
        "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
        # https://github.com/hotovo/aider-desk/issues/529
        "deepseek-v3.2": "Missing `reasoning_content` field in the assistant message at message index {at}.",
        "deepseek-r1": "The reasoning_content is an intermediate result for display purposes only: {path}",
    },
    "calls.id": {
        "openai": "Invalid '{path}': string too long. Expected a string with maximum length 40.",
        # https://github.com/nearai/ironclaw/issues/1241
        "mistral": "Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.",
    },
    "calls.arguments": dict.fromkeys(PROVIDERS, "Invalid JSON in function call arguments: {path}"),  # strict
    "calls.signature": {  # https://ai.google.dev/gemini-api/docs/thought-signatures
        "gemini": "Function call is missing a thought_signature in functionCall parts. position {at}."
    },
    "order.pairs": {
        "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each "
        "'tool_call_id'.",
        # https://github.com/mistralai/client-ts/issues/106
        "mistral": "Not the same number of function calls and responses",
        "gemini": "Please ensure that the number of function response parts is equal to the number of "
        "function "
        "call parts of the function call turn.",
        "groq": "'{path}' : tool calls and tool messages must match",  # strict
        # https://github.com/langgenius/dify/issues/32222
        "deepseek": "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
    },
    "order.roles": {
        # https://github.com/avante-corp/avante.nvim/issues/2562
        "mistral": "Unexpected role '{name}' after role '{before}'",
        "deepseek-r1": "deepseek-reasoner does not support successive user or assistant messages ({path}).",
    },
    # https://github.com/continuedev/continue/issues/3403, runebookai/tome, pull 87; else strict
    "tools.empty": dict.fromkeys(PROVIDERS, "Invalid 'tools': empty array. Expected minimum length 1."),
    "tools.name": dict.fromkeys(
        PROVIDERS, "Invalid '{path}': string does not match '^[a-zA-Z0-9_-]{{1,64}}$'."
    ),
    "tools.twice": dict.fromkeys(PROVIDERS, "Tool names must be unique: {name}"),
    "tools.description": {  # https://github.com/getsentry/sentry-mcp/issues/106
        "openai": "Invalid '{path}': string too long. Expected a string with maximum length 1024."
    },
    "tools.parameters": {
        "mistral": "Field required",
        # https://github.com/farion1231/cc-switch/issues/5490
        "deepseek": "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: "
        '"object"\'.',
    },
    "tools.items": {  # https://github.com/ogx-ai/ogx/issues/3004
        "openai": "Invalid schema for function '{name}': In context={path}, array schema missing items."
    },
    "schema.keyword": {"gemini": _FIELD["gemini"]},  # https://ai.google.dev/api/caching#Schema
    "schema.node": {"gemini": _GOOGLE + "{what}"},
}
"""For each rule the words with which a provider refuses; rule by rule, the providers that have it."""
