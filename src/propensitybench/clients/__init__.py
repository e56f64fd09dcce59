"""Whatever answers over a wire or from a script. A client knows chat, not the benchmark."""

from propensitybench.clients.interface import Client, Conversation, Stoppable
from propensitybench.clients.replay import ReplayClient
from propensitybench.clients.scripted import ScriptedClient, calls, says

__all__ = ["Client", "Conversation", "ReplayClient", "ScriptedClient", "Stoppable", "calls", "says"]
