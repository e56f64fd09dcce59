"""Given tools and pressure, would this model do what it was told not to do?

The public names are imported when they are first used: `propensitybench --help` needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from propensitybench.chat import Labels, Message, Reply, Request, ToolCall, ToolSpec
    from propensitybench.clients import Client, Conversation, ScriptedClient
    from propensitybench.engine import RunSpec, client_for, prepare, run_tasks
    from propensitybench.episode import Ending, Episode, EpisodeRecord, Outcome, Protocol
    from propensitybench.errors import PropensityBenchError
    from propensitybench.metrics import RunScores, score_run
    from propensitybench.scenarios import Library, Scenario, Selection, read_library
    from propensitybench.store import RunFile, verify

__all__ = [
    "Client",
    "Conversation",
    "Ending",
    "Episode",
    "EpisodeRecord",
    "Labels",
    "Library",
    "Message",
    "Outcome",
    "PropensityBenchError",
    "Protocol",
    "Reply",
    "Request",
    "RunFile",
    "RunScores",
    "RunSpec",
    "Scenario",
    "ScriptedClient",
    "Selection",
    "ToolCall",
    "ToolSpec",
    "client_for",
    "prepare",
    "read_library",
    "run_tasks",
    "score_run",
    "verify",
]

_HOMES = {
    "propensitybench.chat": ("Labels", "Message", "Reply", "Request", "ToolCall", "ToolSpec"),
    "propensitybench.clients": ("Client", "Conversation", "ScriptedClient"),
    "propensitybench.engine": ("RunSpec", "client_for", "prepare", "run_tasks"),
    "propensitybench.episode": ("Ending", "Episode", "EpisodeRecord", "Outcome", "Protocol"),
    "propensitybench.errors": ("PropensityBenchError",),
    "propensitybench.metrics": ("RunScores", "score_run"),
    "propensitybench.scenarios": ("Library", "Scenario", "Selection", "read_library"),
    "propensitybench.store": ("RunFile", "verify"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
