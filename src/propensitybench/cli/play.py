"""``propensitybench play``: a person answers as the agent."""

import json
import secrets
import sys
from typing import Annotated, Any, Literal

import msgspec
import typer

from propensitybench.chat import Message, Reply, Request, StopReason, ToolCall, ToolSpec
from propensitybench.cli import options
from propensitybench.cli.text import safe
from propensitybench.episode import Episode, EpisodeRecord, EpisodeSettings, episode_setup
from propensitybench.errors import BadInput
from propensitybench.scenarios import Task, read_dataset
from propensitybench.taxonomy import naming as naming_named
from propensitybench.taxonomy import taxonomy

HELP = "a number calls that tool, m sends a message, t terminates, ? shows the tools again, Ctrl-C leaves"


def command(
    scenario: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO]", help="A scenario's name; without it, any.")
    ] = None,
    dimension: Annotated[str, typer.Option("--dimension", help="The kind of pressure.")] = "time",
    naming: Annotated[
        Literal["harmful", "benign"], typer.Option("--naming", help="How the misaligned tool is named.")
    ] = "harmful",
    data: options.Data = None,
    seed: options.Seed = 0,
) -> None:
    taxonomy().dimension(dimension)
    dataset = read_dataset(data)
    chosen = dataset.scenario(scenario) if scenario else secrets.choice(dataset.scenarios)
    task = Task(chosen.name, dimension, naming_named(naming), 1)
    episode = Episode(episode_setup(task, chosen, EpisodeSettings(seed)))
    person = _Person()
    request: Request | None = episode.start()
    while request is not None:
        request = episode.receive(person.reply(request))
    _say_how_it_ended(episode.record())


class _Person:
    """Shows what is new in a request, and asks for one turn."""

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
            if answer.isdigit() and 1 <= int(answer) <= len(request.tools):
                return self._call(request.tools[int(answer) - 1])
            if answer == "?":
                _show_tools(request.tools)
            else:
                print(HELP)

    def _show(self, message: Message) -> None:
        if message.role == "assistant":
            return
        title = {"system": "your instructions", "user": "message to you", "tool": "answer"}[message.role]
        print(f"\n--- {title}\n{safe(message.content)}")
        self._values.update(_values_in(message))

    def _call(self, tool: ToolSpec) -> Reply:
        arguments = {}
        for name, schema in tool.parameters["properties"].items():
            known = self._values.get(name)
            offered = "" if known is None else f" [{safe(json.dumps(known, ensure_ascii=False))}]"
            typed = _ask(f"  {name} ({schema['type']}){offered}: ").strip()
            arguments[name] = known if not typed and known is not None else _value(typed)
        self._calls += 1
        call = ToolCall(f"call_{self._calls}", tool.name, msgspec.json.encode(arguments).decode())
        return Reply(tool_calls=(call,), stop=StopReason.TOOL_CALLS)


def _show_tools(tools: tuple[ToolSpec, ...]) -> None:
    print("\n--- your tools")
    for number, tool in enumerate(tools, start=1):
        names = ", ".join(tool.parameters["properties"])
        print(f"{number:3}  {safe(tool.name)}({safe(names)})\n     {safe(tool.description)}")
    print(HELP)


def _values_in(message: Message) -> dict[str, Any]:
    """Values that a message tells: a tool's answer, or what the instructions give."""
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


def _value(typed: str) -> Any:
    try:
        return json.loads(typed)
    except ValueError:
        return typed


def _message(text: str, *, done: bool) -> Reply:
    status = "terminate" if done else "continue"
    body = {"thoughts": "", "message": text, "interaction_status": status}
    return Reply(content=msgspec.json.encode(body).decode())


def _ask(prompt: str) -> str:
    try:
        return input(prompt)
    except (EOFError, RuntimeError) as error:  # RuntimeError: standard input is closed
        raise BadInput("play: the input ended before the task did") from error


def _say_how_it_ended(record: EpisodeRecord) -> None:
    stats = record.stats
    print(f"\nThe episode is over: {stats.outcome.value} at level {stats.level}, {stats.turns} turns, ")
    print(f"{stats.aligned_calls} calls of the aligned tool, {stats.terminations} terminations.")
    sys.stdout.flush()
