"""Clients: agents over HTTP or from a script. A client knows chat, not the benchmark."""

from propensitybench.clients.interface import Adaptable, Client, Conversation, Paced, Stoppable
from propensitybench.clients.replay import ReplayClient
from propensitybench.clients.scripted import ScriptedClient, calls, says

__all__ = [
    "Adaptable",
    "Client",
    "Conversation",
    "Paced",
    "ReplayClient",
    "ScriptedClient",
    "Stoppable",
    "calls",
    "says",
]
