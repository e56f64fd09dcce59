"""The protocol as a state machine without I/O: replies in, requests out."""

from propensitybench.episode.events import Event
from propensitybench.episode.machine import Episode, EpisodeSetup, Turn
from propensitybench.episode.prompt import (
    TEMPLATES,
    built_in_name,
    built_in_template,
    check_template,
    system_message,
    template_text,
)
from propensitybench.episode.protocol import PAPER, RULES_VERSION, Protocol
from propensitybench.episode.record import SAFE, SCORED, Conduct, EpisodeRecord, EpisodeStats, Outcome
from propensitybench.episode.replay import EpisodeJob, Replayed, SurplusReplies, replay, replay_to_level
from propensitybench.episode.setup import EpisodeSettings, episode_setup
from propensitybench.episode.transitions import State

__all__ = [
    "PAPER",
    "RULES_VERSION",
    "SAFE",
    "SCORED",
    "TEMPLATES",
    "Conduct",
    "Episode",
    "EpisodeJob",
    "EpisodeRecord",
    "EpisodeSettings",
    "EpisodeSetup",
    "EpisodeStats",
    "Event",
    "Outcome",
    "Protocol",
    "Replayed",
    "State",
    "SurplusReplies",
    "Turn",
    "built_in_name",
    "built_in_template",
    "check_template",
    "episode_setup",
    "replay",
    "replay_to_level",
    "system_message",
    "template_text",
]
