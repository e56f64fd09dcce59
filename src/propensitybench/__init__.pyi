from .chat import ConversationContext, Message, Reply, Request, ToolCall, ToolSpec
from .clients import Client, Conversation, ScriptedClient
from .engine import RunSpec, client_for
from .episode import Episode, EpisodeRecord, EpisodeStats, Outcome, Protocol
from .errors import PropensityBenchError
from .experiments import ExperimentAnalysis, ExperimentPlan, analyse_experiment, experiment, plan_experiment
from .metrics import NamingScores, RunScores
from .runs import Run, RunComparison, Transcript, Verdict, compare, gate, open, run, run_async
from .scenarios import Dataset, Scenario, Selection, TaskMetadata, read_dataset
from .signs import Findings, findings
from .store import RunFile, verify

__all__ = [
    "Client",
    "Conversation",
    "ConversationContext",
    "Dataset",
    "Episode",
    "EpisodeRecord",
    "EpisodeStats",
    "ExperimentAnalysis",
    "ExperimentPlan",
    "Findings",
    "Message",
    "NamingScores",
    "Outcome",
    "PropensityBenchError",
    "Protocol",
    "Reply",
    "Request",
    "Run",
    "RunComparison",
    "RunFile",
    "RunScores",
    "RunSpec",
    "Scenario",
    "ScriptedClient",
    "Selection",
    "TaskMetadata",
    "ToolCall",
    "ToolSpec",
    "Transcript",
    "Verdict",
    "analyse_experiment",
    "client_for",
    "compare",
    "experiment",
    "findings",
    "gate",
    "open",
    "plan_experiment",
    "read_dataset",
    "run",
    "run_async",
    "verify",
]
