"""The same conversations through other software; started by `perf/http_cost.py`.

It runs in a separate environment with `inspect-ai` and `openai`, or `litellm[mcp]`, and without this package.
The conversations come in a JSON file; the measurement is one line of JSON on standard output. The
comparison favours the peers: histories and tool lists are built by hand, and imports and a short warm-up are
not counted.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

# Set before the imports: no price list and no telemetry over the network, and an invalid key.
os.environ.update(
    LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False", OPENAI_API_KEY="x", NO_PROXY="127.0.0.1"
)
MODEL = "full-length"
WARM_UP_CALLS = 3


class Conversation(NamedTuple):
    """The conversation of one task.

    Attributes:
        tools: on offer, as chat-completions tools.
        opening: role and text of the first messages.
        steps: role and text of the messages that follow each reply.
    """

    tools: list[dict[str, Any]]
    opening: list[tuple[str, str]]
    steps: list[list[tuple[str, str]]]

    def start(self) -> "Conversation":
        """The first steps, as a warm-up."""
        return self._replace(steps=self.steps[:WARM_UP_CALLS])


class Plan(NamedTuple):
    """Conversations to play, the endpoint, and how many at a time."""

    conversations: list[Conversation]
    url: str
    concurrency: int


Player = Callable[[Plan], None]


def litellm_play() -> Player:
    """Plays with `litellm.acompletion`."""
    litellm: Any = import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True

    async def talk(conversation: Conversation, url: str, turns: asyncio.Semaphore) -> None:
        messages: list[dict[str, Any]] = [{"role": r, "content": text} for r, text in conversation.opening]
        for step in conversation.steps:
            async with turns:
                answer = await litellm.acompletion(
                    model=f"openai/{MODEL}",
                    api_base=url,
                    api_key="x",
                    messages=messages,
                    tools=conversation.tools,
                )
            (call,) = answer.choices[0].message.tool_calls
            function = {"name": call.function.name, "arguments": call.function.arguments}
            called = {"id": call.id, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [called]})
            for role, text in step:
                messages.append({"role": role, "content": text})
                if role == "tool":
                    messages[-1]["tool_call_id"] = call.id

    async def everything(plan: Plan) -> None:
        turns = asyncio.Semaphore(plan.concurrency)
        await asyncio.gather(*(talk(conversation, plan.url, turns) for conversation in plan.conversations))

    return lambda plan: asyncio.run(everything(plan))


def inspect_play() -> Player:
    """Plays as an Inspect AI task, with the default log."""
    inspect: Any = import_module("inspect_ai")
    models: Any = import_module("inspect_ai.model")
    datasets: Any = import_module("inspect_ai.dataset")
    tooling: Any = import_module("inspect_ai.tool")
    solver: Callable[[Any], Any] = import_module("inspect_ai.solver").solver

    def message(role: str, text: str, call: str = "", name: str = "") -> Any:
        if role == "tool":
            return models.ChatMessageTool(content=text, tool_call_id=call, function=name)
        return (
            models.ChatMessageSystem(content=text)
            if role == "system"
            else models.ChatMessageUser(content=text)
        )

    def info(tool: dict[str, Any]) -> Any:
        function = tool["function"]
        parameters = tooling.ToolParams(**function["parameters"])
        return tooling.ToolInfo(
            name=function["name"], description=function["description"], parameters=parameters
        )

    @solver
    def talk(conversations: list[Conversation]) -> Any:
        async def solve(state: Any, _generate: Any) -> Any:
            conversation = conversations[state.metadata["number"]]
            tools = [info(tool) for tool in conversation.tools]
            model = models.get_model()
            state.messages = [message(role, text) for role, text in conversation.opening]
            for step in conversation.steps:
                output = await model.generate(state.messages, tools=tools)
                state.messages.append(output.message)
                (call,) = output.message.tool_calls
                state.messages += [message(role, text, call.id, call.function) for role, text in step]
            return state

        return solve

    def play(plan: Plan) -> None:
        samples = [
            datasets.Sample(input=conversation.opening[-1][1], metadata={"number": number})
            for number, conversation in enumerate(plan.conversations)
        ]
        model = models.get_model(f"openai-api/local/{MODEL}", base_url=plan.url, api_key="x")
        with tempfile.TemporaryDirectory() as folder:
            (log,) = inspect.eval(
                inspect.Task(dataset=datasets.MemoryDataset(samples), solver=talk(plan.conversations)),
                model=model,
                display="none",
                log_dir=folder,
                max_connections=plan.concurrency,
                max_samples=plan.concurrency,
            )
        if log.status != "success":
            raise SystemExit(f"Inspect AI: {log.status}: {log.error}")

    return play


PEERS: dict[str, Callable[[], Player]] = {"inspect": inspect_play, "litellm": litellm_play}


def measure(play: Player, plan: Plan) -> dict[str, float]:
    """Calls, CPU seconds and wall-clock seconds, after a warm-up."""
    play(plan._replace(conversations=[plan.conversations[0].start()]))
    cpu, wall = time.process_time(), time.perf_counter()
    play(plan)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    calls = sum(len(conversation.steps) for conversation in plan.conversations)
    return {"calls": calls, "cpu": cpu, "wall": wall}


def main() -> None:
    """Reads the command line, plays and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("conversations", type=Path)
    parser.add_argument("url")
    parser.add_argument("concurrency", type=int)
    arguments = parser.parse_args()
    found = json.loads(arguments.conversations.read_bytes())
    conversations = [Conversation(**conversation) for conversation in found]
    plan = Plan(conversations, arguments.url, arguments.concurrency)
    print(json.dumps(measure(PEERS[arguments.peer](), plan)))


if __name__ == "__main__":
    main()
