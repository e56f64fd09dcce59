"""A client or a function that the user gives: checked before the run, its errors shown with their place."""

import asyncio
import inspect
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients.breaker import FAILURES_TO_STOP, REFUSALS_TO_STOP, Breaker
from propensitybench.clients.client import Client, Conversation
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.function import (
    AgentFunction,
    FunctionClient,
    check_function,
    described,
    shown_file,
)
from propensitybench.errors import BadInput, ModelError, RequestRefused, RunMismatch, RunStopped

_PACKAGE: Final = Path(__file__).parents[1]
_LIBRARIES: Final = tuple(
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
# Of an error in a message and in the run file.
MAX_ERROR: Final = 300


class GivenClient(Client):
    """The user's client. The same few failures stop the run as at an endpoint; see `Breaker`.

    An exception in it counts as a refusal: five tasks in a row that fail at the same place with the same
    type stop the run. A `ModelError` counts as a failure: twenty in a row do.

    Args:
        client: does the work.
        model: its address in the run file.

    Attributes:
        name: of its code, for messages and the run file.
    """

    def __init__(self, client: Client, model: str) -> None:
        self.model = model
        self.name = described(client.function) if isinstance(client, FunctionClient) else _class_of(client)
        self.knows_task = client.knows_task
        self.has_endpoint = client.has_endpoint
        self.options = client.options
        self._client = client
        self._breaker = Breaker()
        self._is_stopped = False

    @property
    def dialect(self) -> ChatDialect | None:
        """The client's own."""
        return self._client.dialect

    @dialect.setter
    def dialect(self, dialect: ChatDialect | None) -> None:
        self._client.dialect = dialect

    def open(self, context: ConversationContext) -> Conversation:
        """Starts a conversation of the client, when its first reply is asked for."""
        return _GivenConversation(self, context)

    def stop_requests(self) -> None:
        """Sends no further requests."""
        self._is_stopped = True
        self._client.stop_requests()

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()

    def opened(self, context: ConversationContext) -> Conversation:
        """A conversation of the client; raises `TypeError` if it is none."""
        found = self._client.open(context)
        if not hasattr(found, "reply"):
            raise TypeError(f"{self.name}.open must return an object with `async def reply(self, request)`")
        return found

    async def ask(self, conversation: Conversation, request: Request) -> Reply:
        """The reply of a conversation; raises `TypeError` if it is none."""
        found = conversation.reply(request)
        reply = await found if inspect.isawaitable(found) else found
        if not isinstance(reply, Reply):
            raise TypeError(
                f"{self.name}: reply must return a propensitybench.Reply, found {type(reply).__name__}"
            )
        return reply

    async def guarded(self, conversation: "_GivenConversation", request: Request) -> Reply:
        """The reply of a conversation.

        Raises:
            ModelError: there is none; the text names the place in the user's code.
            RunStopped: so many tasks in a row have failed that the others would.
        """
        if self._is_stopped:
            raise RunStopped("requests have stopped")
        breaker, clock, depth = self._breaker, asyncio.get_running_loop().time, len(request.messages)
        number, began = breaker.sent(), clock()
        try:
            reply = await conversation.ask(request)
        except (RequestRefused, RunStopped):  # its own client's rules have been applied
            breaker.back(number)
            raise
        except ModelError as raised:
            breaker.back(number)
            if (failures := breaker.gave_up(began)) >= FAILURES_TO_STOP:
                raise self._stopped(f"{failures} tasks failed in a row, the last with: {raised}") from raised
            raise
        except (Exception, SystemExit) as raised:
            breaker.back(number)
            place, error = _place_of(raised), f"{type(raised).__name__}: {raised}"[:MAX_ERROR]
            text = f"{place}: {error}" if place else error
            wording = f"{place} {type(raised).__name__}" if place else error
            if (failures := breaker.refused(clock(), wording, depth)) >= REFUSALS_TO_STOP:
                why = f"{failures} tasks in a row failed with the same error: {text}"
                raise self._stopped(why) from raised
            raise ModelError(text) from raised
        except BaseException:
            breaker.back(number)
            raise
        breaker.back(number)
        breaker.answered(clock(), depth)
        return reply

    def _stopped(self, why: str) -> RunStopped:
        self.stop_requests()
        return RunStopped(f"{self.model}: {why}", bad_input=True)


class _GivenConversation:
    def __init__(self, client: GivenClient, context: ConversationContext) -> None:
        self._client = client
        self._context = context
        self._opened: Conversation | None = None

    async def reply(self, request: Request) -> Reply:
        return await self._client.guarded(self, request)

    async def ask(self, request: Request) -> Reply:
        self._opened = self._opened or self._client.opened(self._context)
        return await self._client.ask(self._opened, request)


def given_client(given: Client | AgentFunction, model: str) -> GivenClient:
    """The client of what the user gives.

    Args:
        given: a client, or a function of messages and tools.
        model: its address in the run file.

    Raises:
        BadInput: it is neither, or can be seen not to work.
        RunMismatch: the client is of another model.
    """
    if isinstance(given, type):
        raise BadInput(f"client: is the class {given.__name__}; give an object of it, {given.__name__}(...)")
    if isinstance(given, Client):
        kind = type(given)
        if kind.reply is Client.reply and kind.open is Client.open:
            raise BadInput(f"client: {kind.__name__} overrides neither reply nor open")
        own = getattr(given, "model", model)
        if own != model:
            raise RunMismatch(f"client: is {own}, not {model}; give the same name to both")
        return GivenClient(given, model)
    if not callable(given):
        raise BadInput(
            "client: must be a function of messages and tools, or a propensitybench.Client, found "
            f"{type(given).__name__}"
        )
    check_function(given)
    return GivenClient(FunctionClient(given, model), model)


def _class_of(client: Client) -> str:
    kind = type(client)
    try:
        return f"{kind.__qualname__} ({shown_file(inspect.getfile(kind))})"
    except (TypeError, OSError):  # made where no file is
        return kind.__qualname__


def _place_of(raised: BaseException) -> str:
    """The innermost line of the user's own code in a traceback, else of a library's; else empty."""
    lines = [line for line in _lines(raised.__traceback__) if not line[0].is_relative_to(_PACKAGE)]
    own = [line for line in lines if not any(line[0].is_relative_to(folder) for folder in _LIBRARIES)]
    if not lines:
        return ""
    path, number = (own or lines)[-1]
    return f"{shown_file(str(path))}:{number}"


def _lines(trace: TracebackType | None) -> Iterator[tuple[Path, int]]:
    for frame, number in traceback.walk_tb(trace):
        yield Path(frame.f_code.co_filename), number
