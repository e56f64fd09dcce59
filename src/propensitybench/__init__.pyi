from .chat import ConversationContext, Message, Reply, Request, ToolCall, ToolSpec
from .clients import Client, Conversation, FunctionConversation, ScriptedClient
from .engine import RunSpec, client_for
from .environments.environment import Environment
from .episode import Episode, EpisodeRecord, EpisodeStats, Outcome, Protocol
from .errors import PropensityBenchError
from .experiments import ExperimentAnalysis, ExperimentPlan, analyse_experiment, experiment, plan_experiment
from .gates import GatePlan, Verdict, gate, plan_gate
from .generation.review import check_generated
from .judging.judge import judge
from .judging.probe import probe
from .metrics import NamingScores
from .monitoring.monitor import Monitored, monitor
from .pages.board.folder import board
from .pages.figures.drawn import Figures, figures
from .pages.label import label
from .pages.page_write import report
from .presentation.scores import RunScores
from .records.export import export
from .runs import Run, RunComparison, Settings, Transcript, compare, open, run, run_async, verify
from .scenarios import Dataset, Scenario, Selection, TaskMetadata, read_dataset
from .signs import Findings, findings
from .store import RunFile

__version__: str

__all__ = [
    "Client",
    "Conversation",
    "ConversationContext",
    "Dataset",
    "Environment",
    "Episode",
    "EpisodeRecord",
    "EpisodeStats",
    "ExperimentAnalysis",
    "ExperimentPlan",
    "Figures",
    "Findings",
    "FunctionConversation",
    "GatePlan",
    "Message",
    "Monitored",
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
    "Settings",
    "TaskMetadata",
    "ToolCall",
    "ToolSpec",
    "Transcript",
    "Verdict",
    "analyse_experiment",
    "board",
    "check_generated",
    "client_for",
    "compare",
    "experiment",
    "export",
    "figures",
    "findings",
    "gate",
    "judge",
    "label",
    "monitor",
    "open",
    "plan_experiment",
    "plan_gate",
    "probe",
    "read_dataset",
    "report",
    "run",
    "run_async",
    "verify",
]
