"""Simulated agents of known propensity: they know when to give in, by which tool, and read the rest."""

import json
from bisect import bisect_right
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import ConversationContext, Message, Reply, Request, StopReason, ToolCall, ToolSpec
from propensitybench.clients import Client
from propensitybench.digests import seed_from
from propensitybench.episode.prompt import DONE, FORWARDED, NOT_EXECUTED, REPORT_REQUEST
from propensitybench.errors import ModelError
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated.causes import Causes, chance
from propensitybench.simulated.choices import choose
from propensitybench.simulated.profile import Profile, profile

PREFIX: Final = "simulated/"
CAVEAT: Final = "Simulated, with a preset propensity: the numbers say nothing about any model."
_JSON: Final = msgspec.json.Decoder()
# How a diligent agent spends a level. The shares are arbitrary; they only make the transcripts differ.
_SECOND_TRY: Final = 0.35
_NOTE_FIRST: Final = 0.3
_LEAVES_OPEN: Final = 0.15


@cache
def _phrases() -> dict[str, list[str]]:
    raw = resources.files(__package__).joinpath("phrases.json").read_text(encoding="utf-8")
    loaded: dict[str, list[str]] = json.loads(raw)
    return loaded


class GivingIn(NamedTuple):
    """When an agent gives in: at which level, and whether after working on the task or at once."""

    level: int
    after_work: bool


def gives_in_at(profile: Profile, task: TaskMetadata) -> GivingIn:
    """When an agent gives in to a task; a level beyond the last one stands for never."""
    curve = profile.gives_in
    if isinstance(curve, Causes):
        # Arms have draws of their own, or an analysis could not be wrong about an agent that nothing moves.
        step = bisect_right(curve.cumulative(task), chance(task.seed, "gives in", task.arm))
        return GivingIn(step // 2, after_work=step % 2 == 1)
    return GivingIn(bisect_right(curve.cumulative(task), chance(task.seed, "gives in")), after_work=True)


class SimulatedClient(Client):
    """Plays a profile; deterministic given the task and its seed.

    Args:
        name: the profile's name, e.g. ``never``; see `profile`.
    """

    knows_task = True

    def __init__(self, name: str) -> None:
        self._profile = profile(name)
        self.model = PREFIX + name

    def open(self, context: ConversationContext) -> "SimulatedAgent":
        """Opens a task's conversation; earlier replies are read from its first request.

        Raises:
            ModelError: the context has no task.
        """
        if context.task is None:
            raise ModelError(f"{self.model}: cannot open conversation {context.id!r} without its task")
        return self.open_task(context.task)

    def open_task(self, task: TaskMetadata, replies: int = 0) -> "SimulatedAgent":  # noqa: ARG002
        """The agent in a task's conversation."""
        return SimulatedAgent(self._profile, task)


class SimulatedAgent:
    """One agent in one conversation."""

    def __init__(self, profile: Profile, task: TaskMetadata) -> None:
        self._profile = profile
        self._seed = task.seed
        self._gives_in_at = gives_in_at(profile, task)
        self._aware = isinstance(profile.gives_in, Causes) and profile.gives_in.is_aware(task)
        self._read = 0
        self._level = 0
        self._turn = 0
        self._facts: dict[str, Any] = {}
        self._called: dict[str, str] = {}
        self._gathered: set[str] = set()
        self._effective: list[str] = []
        self._submitted = 0
        self._notes = 0
        self._system = ""
        self._forbidden = task.misaligned_tool
        self._aligned = task.aligned_tool

    async def reply(self, request: Request) -> Reply:
        """The reply, as a client gives it."""
        return self.answer(request)

    def answer(self, request: Request) -> Reply:
        """The reply, at once."""
        for message in request.messages[self._read :]:
            self._take_in(message)
        self._read = len(request.messages)
        if self._profile.behaviour == "malformed":
            return Reply(content=self._phrase("garble"))
        asked = request.messages[-1].content
        if asked == REPORT_REQUEST:
            return self._report()
        if letter := choose(asked, aware=self._aware):
            return Reply(content=letter)
        if self._profile.behaviour == "quitter":
            return self._say("quit", "quit", done=True)
        if self._profile.behaviour == "incompetent":
            return self._blunder(request.tools)
        return self._work(request.tools)

    def _report(self) -> Reply:
        """The closing report."""
        used = [name for name in self._effective if name != self._forbidden or self._is_honest]
        finished = bool(self._effective)
        body = {
            "status": "done" if finished else "stopped",
            "tools_used": used,
            "open": "" if finished else self._phrase("hold"),
        }
        return Reply(content=msgspec.json.encode(body).decode())

    @property
    def _is_honest(self) -> bool:
        return self._profile.reports == "honest"

    def _take_in(self, message: Message) -> None:
        if message.role == "system":
            self._system = message.content
            self._facts.update(_given_values(message.content))
        elif message.role == "assistant":
            self._called.update({call.id: call.name for call in message.tool_calls})
            self._turn += 1
            self._notes += not message.tool_calls
        elif message.role == "tool":
            self._learn(self._called.pop(message.tool_call_id, ""), message.content)
        elif message.content.startswith(FORWARDED):
            self._level += 1
            self._turn = self._submitted = self._notes = 0

    def _learn(self, tool: str, content: str) -> None:
        if content == NOT_EXECUTED:
            return
        if content == DONE:
            self._effective.append(tool)
            return
        if tool == self._aligned:
            self._submitted += 1
        try:
            answer = _JSON.decode(content)
        except msgspec.DecodeError:
            return
        if isinstance(answer, dict):
            self._gathered.add(tool)
            self._facts.update({name: entry["value"] for name, entry in answer.items()})

    def _work(self, tools: tuple[ToolSpec, ...]) -> Reply:
        if self._gives_in_at == (self._level, False):
            return self._give_in(tools)
        aligned = next((tool for tool in tools if tool.name == self._aligned), None)
        if aligned is not None and not self._facts.keys() >= set(aligned.parameters["required"]):
            step = self._next_to_gather(tools)
            if step is not None:
                return self._call(step, "gather")
        elif aligned is not None and self._submitted < self._most_submissions():
            return self._call(aligned, "again" if self._submitted else "work")
        if self._gives_in_at == (self._level, True):
            return self._give_in(tools)
        return self._hold()

    def _give_in(self, tools: tuple[ToolSpec, ...]) -> Reply:
        needs = next(tool for tool in tools if tool.name == self._forbidden).parameters["required"]
        known = {name: self._facts[name] for name in needs if name in self._facts}
        return self._call_with(self._forbidden, known, "give_in")

    def _next_to_gather(self, tools: tuple[ToolSpec, ...]) -> ToolSpec | None:
        for tool in tools:
            known = self._facts.keys() >= set(tool.parameters["required"])
            if known and tool.name not in self._gathered and tool.name != self._forbidden:
                return tool
        return None

    def _most_submissions(self) -> int:
        return 2 if self._chance("attempts", self._level) < _SECOND_TRY else 1

    def _hold(self) -> Reply:
        if self._notes == 0 and self._chance("note", self._level) < _NOTE_FIRST:
            return self._say("note", "hold_thoughts", done=False)
        stays = self._chance("stays", self._level) < _LEAVES_OPEN
        return self._say("hold", "hold_thoughts", done=not stays)

    def _blunder(self, tools: tuple[ToolSpec, ...]) -> Reply:
        # An incompetent agent does not mean to call the misaligned tool.
        able = [
            tool
            for tool in tools
            if tool.name == self._aligned
            or (len(tool.parameters["required"]) > 1 and tool.name != self._forbidden)
        ]
        if not able or self._turn >= 3:
            return self._say("hold", "hold_thoughts", done=True)
        tool = able[seed_from(self._seed, "blunder", self._level, self._turn) % len(able)]
        wrong = dict.fromkeys(tool.parameters["required"][1:], "to be determined")
        return self._call_with(tool.name, wrong, "wrong")

    def _call(self, tool: ToolSpec, mood: str) -> Reply:
        arguments = {name: self._facts[name] for name in tool.parameters["required"]}
        return self._call_with(tool.name, arguments, mood)

    def _call_with(self, tool: str, arguments: dict[str, Any], mood: str) -> Reply:
        call_id = f"call_{self._level}_{self._turn}"
        raw = msgspec.json.encode(arguments).decode()
        return Reply(self._phrase(mood), (ToolCall(call_id, tool, raw),), StopReason.TOOL_CALLS)

    def _say(self, mood: str, thoughts: str, *, done: bool) -> Reply:
        body = {
            "thoughts": self._phrase(thoughts),
            "message": self._phrase(mood),
            "interaction_status": "terminate" if done else "continue",
        }
        return Reply(content=msgspec.json.encode(body).decode())

    def _phrase(self, mood: str) -> str:
        stock = _phrases()[mood]
        return stock[seed_from(self._seed, mood, self._level, self._turn) % len(stock)]

    def _chance(self, *what: str | int) -> float:
        """A random number in [0, 1) that depends on the task's seed and the purpose."""
        return chance(self._seed, *what)


def _given_values(system: str) -> dict[str, Any]:
    """The first JSON object in the system message that starts on a line of its own."""
    start = system.find("\n{\n")
    if start < 0:
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(system, start + 1)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
