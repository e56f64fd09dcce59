"""``propensitybench play``: a person plays the agent."""

import json
import secrets
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from propensitybench.chat import Message, Reply, Request, StopReason, ToolCall, ToolSpec
from propensitybench.cli import options
from propensitybench.episode import Episode, EpisodeSettings, episode_setup
from propensitybench.errors import BadInput
from propensitybench.escaping import visible
from propensitybench.pressure import pressure_chain
from propensitybench.scenarios import Task, read_dataset

HELP = "number: call that tool; m: send a message; t: terminate; ?: show the tools again; Ctrl-C: quit"
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def command(
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A scenario's name. Default: a random one.")
    ] = None,
    dimension: Annotated[
        str, typer.Option("--dimension", metavar="DIMENSION", help="Pressure dimension.")
    ] = "time",
    naming: Annotated[
        Literal["harmful", "benign"], typer.Option("--naming", help="Name of the misaligned tool.")
    ] = "harmful",
    data: options.Data = None,
    seed: options.Seed = 0,
) -> None:
    dataset = read_dataset(data)
    dataset.lists.dimension(dimension)
    chosen = dataset.scenario(scenario) if scenario else secrets.choice(dataset.scenarios)
    task = Task(chosen.name, dimension, naming, 1)
    chain = pressure_chain(chosen, dimension, dataset.storylines, seed)
    episode = Episode(episode_setup(task, chosen, EpisodeSettings(seed), chain))
    person = _Person()
    request: Request | None = episode.start()
    while request is not None:
        request = episode.receive(person.reply(request))
    stats = episode.record().stats
    print(f"\nThe episode is over: {stats.outcome.value} at level {stats.level}, {stats.turns} turns,")
    print(f"{stats.aligned_calls} calls of the aligned tool, {stats.terminations} terminations.")
    sys.stdout.flush()


class _Person:
    """Shows what is new in a request and reads one turn."""

    def __init__(self) -> None:
        self._shown = 0
        self._values: dict[str, Any] = {}
        self._calls = 0

    def reply(self, request: Request) -> Reply:
        for message in request.messages[self._shown :]:
            self._show(message)
        self._shown = len(request.messages)
        _show_tools(request.tools)
        while True:
            answer = _ask("> ").strip()
            if answer in ("m", "t"):
                return _message(_ask("message: "), done=answer == "t")
            if answer.isdecimal() and 1 <= int(answer) <= len(request.tools):
                return self._call(request.tools[int(answer) - 1])
            if answer == "?":
                _show_tools(request.tools)
            else:
                print(HELP)

    def _show(self, message: Message) -> None:
        if message.role == "assistant":
            return
        title = {"system": "system message", "user": "message to you", "tool": "tool result"}[message.role]
        print(f"\n--- {title}\n{message.content}")
        self._values.update(_values_in(message))

    def _call(self, tool: ToolSpec) -> Reply:
        properties = tool.parameters["properties"]
        arguments = {name: self._argument(name, schema) for name, schema in properties.items()}
        self._calls += 1
        call = ToolCall(f"call_{self._calls}", tool.name, msgspec.json.encode(arguments).decode())
        return Reply(tool_calls=(call,), stop=StopReason.TOOL_CALLS)

    def _argument(self, name: str, schema: Mapping[str, Any]) -> Any:
        known = name in self._values
        offered = f" [{json.dumps(self._values[name], ensure_ascii=False)}]" if known else ""
        while True:
            typed = _ask(f"  {name} ({schema['type']}){offered}: ").strip()
            if known and not typed:
                return self._values[name]
            try:
                return read_argument(typed, schema["type"])
            except ValueError as error:
                print(f"  {error}")


def read_argument(typed: str, kind: str) -> Any:
    """A typed argument as a value of a JSON Schema type; raises `ValueError` with a sentence for the user."""
    try:
        value = json.loads(typed, parse_constant=_refuse)  # NaN and Infinity are not JSON
    except (ValueError, RecursionError):
        value = _NOT_JSON
    # In Python a truth value is an integer, in JSON it is not.
    if isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean"):
        return value
    if kind == "string":
        return typed
    raise ValueError(f"expected JSON of type {kind}, for example {_EXAMPLES[kind]}")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


_NOT_JSON: Final = object()
_EXAMPLES: Final[Mapping[str, str]] = {
    "integer": "12",
    "number": "1.5",
    "boolean": "true",
    "array": '["a", "b"]',
    "object": '{"key": "value"}',
    "null": "null",
}


def _show_tools(tools: tuple[ToolSpec, ...]) -> None:
    print("\n--- your tools")
    for number, tool in enumerate(tools, start=1):
        names = ", ".join(tool.parameters["properties"])
        print(f"{number:3}  {tool.name}({names})\n     {tool.description}")
    print(HELP)


def _values_in(message: Message) -> dict[str, Any]:
    """The values that a tool's result or the system message gives."""
    start = message.content.find("{\n" if message.role == "system" else "{")
    try:
        found, _ = json.JSONDecoder().raw_decode(message.content, max(start, 0))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    if message.role == "tool":
        return {name: entry["value"] for name, entry in found.items() if isinstance(entry, dict)}
    return found


def _message(text: str, *, done: bool) -> Reply:
    status = "terminate" if done else "continue"
    body = {"thoughts": "", "message": text, "interaction_status": status}
    return Reply(content=msgspec.json.encode(body).decode())


def _ask(prompt: str) -> str:
    try:
        return input(visible(prompt))  # Python writes it to a terminal past `sys.stdout`
    except (EOFError, RuntimeError) as error:  # RuntimeError: standard input is closed
        raise BadInput("play: the input ended before the task did") from error
