"""Clients: agents over HTTP or from a script. A client knows chat, not the benchmark."""

from propensitybench.clients.client import Client, Conversation
from propensitybench.clients.function import FunctionConversation
from propensitybench.clients.scripted import ScriptedClient, calls, says

__all__ = ["Client", "Conversation", "FunctionConversation", "ScriptedClient", "calls", "says"]
