"""An agent that is a plain function of messages and tools, written as OpenAI's API has them."""

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.chat import UNDECODABLE, ConversationContext, Reply, Request, ToolSpec
from propensitybench.clients.client import Client, Conversation
from propensitybench.clients.failures import Failure
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire import Body
from propensitybench.clients.wire_calls import ReplyContext
from propensitybench.clients.wire_reply import parse
from propensitybench.clients.wire_tools import with_full_names
from propensitybench.errors import BadInput, ModelError

Replied = str | Mapping[str, Any] | Reply
# Takes messages and tools.
AgentFunction = Callable[
    [list[dict[str, Any]], list[dict[str, Any]]],
    Replied | Awaitable[Replied],
]
_WANTED: Final = (
    "a text, a message like {'role': 'assistant', 'content': '...', 'tool_calls': [...]} or a "
    "propensitybench.Reply"
)
_MESSAGE_FIELDS: Final = ("content", "tool_calls", "function_call", "refusal")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class FunctionConversation:
    """A conversation whose replies a function gives.

    The function takes the whole conversation and the tools on offer, both as lists of dicts in the form of
    OpenAI's chat completions and its own to change. It returns a text, an assistant message as a dict
    (``content``, ``tool_calls``; ``usage`` if known), a whole chat completion as a dict, or a `Reply`.

    A function that is not asynchronous is called in a thread of its own, so that it holds up neither the
    event loop nor other conversations: as many calls run at a time as the run has ``concurrency``.

    Args:
        function: asynchronous or not.
    """

    def __init__(self, function: AgentFunction) -> None:
        self._function = function
        self._body = Body("", ModelOptions())

    async def reply(self, request: Request) -> Reply:
        """The reply to a request; raises `TypeError` if the function returns something else."""
        asked = _decode(self._body.of(request))
        context = self._body.context
        context.sent = 0  # nothing is estimated: what a function sends is not known
        started = time.monotonic()
        given = await _called(self._function, asked["messages"], asked.get("tools", []))
        context.latency_ms = round(1000 * (time.monotonic() - started))
        try:
            return read_reply(given, request.tools, context)
        except TypeError as error:
            raise TypeError(f"{described(self._function)} {error}") from error


class FunctionClient(Client):
    """A client whose replies a function gives; see `FunctionConversation`."""

    def __init__(self, function: AgentFunction, model: str) -> None:
        self.model = model
        self.function = function

    def open(self, context: ConversationContext) -> Conversation:  # noqa: ARG002
        """Starts a conversation; the function is given its history each time."""
        return FunctionConversation(self.function)


def check_function(function: Callable[..., Any]) -> None:
    """Raises `BadInput` for a function that cannot be called with messages and tools."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a built-in one may not say what it takes
    try:
        signature.bind([], [])
    except TypeError as error:
        raise BadInput(
            f"client: {described(function)} must take messages and tools, and takes "
            f"{', '.join(signature.parameters) or 'nothing'} ({error})"
        ) from error


def described(code: object) -> str:
    """A function or an object by name, with the file and line where its code is, if it can be told."""
    inner = code.func if isinstance(code, partial) else code
    name: str = getattr(inner, "__name__", type(inner).__name__)
    made = getattr(_routine(inner), "__code__", None)
    return f"{name} ({shown_file(made.co_filename)}:{made.co_firstlineno})" if made else name


def _routine(code: object) -> object:
    """What is called: the function itself, or the method of an object that can be called."""
    inner = code.func if isinstance(code, partial) else code
    return inner if inspect.isroutine(inner) else getattr(type(inner), "__call__", None)  # noqa: B004


def shown_file(name: str) -> str:
    """A file of code as messages and run files name it, which other people read: not where it lies."""
    path = Path(name)
    if path.parent.name.startswith("ipykernel_"):
        return "notebook cell"
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def read_reply(given: object, tools: Sequence[ToolSpec], context: ReplyContext) -> Reply:
    """What a function returned, as a reply.

    Raises:
        TypeError: it is none; the message continues the name of the function.
        ModelError: it is a chat completion that holds an error.
    """
    if isinstance(given, Reply):
        return with_full_names(given, tools)
    if isinstance(given, str):
        return Reply(given, latency_ms=context.latency_ms)
    if not isinstance(given, Mapping):
        advice = "; return its model_dump()" if hasattr(given, "model_dump") else ""
        raise TypeError(f"must return {_WANTED}, found {type(given).__name__}{advice}")
    try:
        reply, error = parse(msgspec.json.encode(_completion(given)), tuple(tools), context)
    except (Failure, TypeError, ValueError, *UNDECODABLE) as error:
        raise TypeError(f"must return {_WANTED}: {error}") from error
    if error is not None:
        raise ModelError(f"the chat completion holds an error: {error}")
    if not all(call.name for call in reply.tool_calls):
        raise TypeError(f"must return {_WANTED}; a tool call has no function.name")
    return reply


def _completion(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dict as a chat completion; raises `TypeError` if it is neither that nor a message."""
    if "choices" in given:
        return given
    if not any(field in given for field in _MESSAGE_FIELDS):
        raise TypeError(f"found a dict with {', '.join(map(repr, given)) or 'nothing'}")
    if not isinstance(given.get("content"), str | list | None):
        raise TypeError(f"content is {type(given['content']).__name__}")
    message = {name: value for name, value in given.items() if name not in ("usage", "finish_reason")}
    ended = given.get("finish_reason") or "stop"
    return {"choices": [{"message": message, "finish_reason": ended}], "usage": given.get("usage")}


async def _called(function: AgentFunction, *arguments: Any) -> object:
    """What a function returns, called in a thread unless it is asynchronous."""
    if inspect.iscoroutinefunction(_routine(function)):
        found: object = function(*arguments)
    else:
        found = await _in_thread(partial(function, *arguments))
    return await found if inspect.isawaitable(found) else found


async def _in_thread(work: Callable[[], object]) -> object:
    """What a function returns in a thread of its own.

    A pool would have fewer threads than a run has conversations. At the end of the program Python would wait
    for its threads, and a call that hangs would keep a stopped run from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def finish(found: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((found, error))

    def call() -> None:
        try:
            found, error = work(), None
        except BaseException as raised:  # noqa: BLE001 - raised again where the reply is awaited
            found, error = None, raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, found, error)

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(call,), name="propensitybench agent", daemon=True).start()
    found, error = await done
    if error is not None:
        raise error
    return found
