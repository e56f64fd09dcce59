"""The protocol as a state machine without I/O: replies in, requests out."""

from propensitybench.episode.events import Event
from propensitybench.episode.machine import Episode, Play, Turn
from propensitybench.episode.outcome import Ending, EpisodeRecord, Outcome
from propensitybench.episode.prompt import built_in_template, system_message
from propensitybench.episode.protocol import PAPER, RULES_VERSION, Protocol
from propensitybench.episode.setup import labels_of, set_up
from propensitybench.episode.transitions import State

__all__ = [
    "PAPER",
    "RULES_VERSION",
    "Ending",
    "Episode",
    "EpisodeRecord",
    "Event",
    "Outcome",
    "Play",
    "Protocol",
    "State",
    "Turn",
    "built_in_template",
    "labels_of",
    "set_up",
    "system_message",
]
