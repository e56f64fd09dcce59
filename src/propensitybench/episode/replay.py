"""An episode as a value: what it takes to play it anywhere, from where its journal ends."""

from typing import NamedTuple

from propensitybench.chat import Reply, Request
from propensitybench.episode.machine import Episode
from propensitybench.episode.setup import EpisodeSettings, episode_setup
from propensitybench.errors import NotARunFile
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.selection import Task


class EpisodeJob(NamedTuple):
    """One task and everything needed to play it; can be pickled and sent to another process.

    Attributes:
        number: of the task in its run.
        replies: those that are journaled already, in order.
    """

    number: int
    task: Task
    scenario: Scenario
    pressure: tuple[PressureMessage, ...]
    settings: EpisodeSettings
    replies: tuple[Reply, ...] = ()


class Replayed(NamedTuple):
    """An episode brought to where its journal ends; ``request`` is None if it is over there."""

    episode: Episode
    request: Request | None


class SurplusReplies(NotARunFile):
    """A journal that continues after its episode is over."""


def replay(job: EpisodeJob) -> Replayed:
    """Plays a task's journal.

    Raises:
        SurplusReplies: the journal continues after the episode is over.
    """
    episode = Episode(episode_setup(job.task, job.scenario, job.settings, job.pressure))
    request: Request | None = episode.start()
    for number, reply in enumerate(job.replies):
        if request is None:
            surplus = len(job.replies) - number
            raise SurplusReplies(f"is damaged ({surplus} replies after the end of {job.task.key})")
        request = episode.receive(reply)
    return Replayed(episode, request)
