"""An episode as a value that can be sent anywhere and played from where its journal ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from propensitybench.chat import Reply, Request
from propensitybench.episode.machine import Episode
from propensitybench.episode.record import EpisodeRecord
from propensitybench.episode.setup import EpisodeSettings, episode_setup
from propensitybench.errors import BadInput, ModelError, NotARunFile
from propensitybench.pressure import Chain
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.selection import Task


class EpisodeJob(NamedTuple):
    """One task and everything needed to play it. It can be pickled and sent to another process.

    Attributes:
        number: the task's number in its run.
        pressure: the pressure messages.
        replies: the journaled replies, in order.
        source: the run file, for error messages.
    """

    number: int
    task: Task
    scenario: Scenario
    pressure: Chain
    settings: EpisodeSettings
    replies: tuple[Reply, ...] = ()
    source: str = "the run"


class Replayed(NamedTuple):
    """An episode at the end of its journal; ``request`` is None if the episode is over."""

    episode: Episode
    request: Request | None

    @property
    def record(self) -> EpisodeRecord:
        """The outcome, or what is known so far of an episode whose outcome is open."""
        return self.episode.record() if self.episode.decided else self.episode.unfinished()


class SurplusReplies(NotARunFile):
    """A journal that continues after the end of its episode, by ``surplus`` replies."""

    def __init__(self, job: EpisodeJob, surplus: int) -> None:
        self.surplus = surplus
        count = "1 reply" if surplus == 1 else f"{surplus} replies"
        super().__init__(f"{job.source}: is damaged ({count} after the end of {job.task.key})")


@contextmanager
def _playing(job: EpisodeJob) -> Iterator[None]:
    try:
        yield
    except NotARunFile:
        raise
    except (BadInput, ModelError) as error:
        raise NotARunFile(f"{job.source}: {job.task.key} cannot be played ({error})") from error


def replay(job: EpisodeJob) -> Replayed:
    """Replays a task's journal.

    Raises:
        SurplusReplies: the journal continues after the end of the episode.
        NotARunFile: the task cannot be played, or its conversation is too long.
    """
    with _playing(job):
        episode = Episode(episode_setup(job.task, job.scenario, job.settings, job.pressure))
        request: Request | None = episode.start()
        for number, reply in enumerate(job.replies):
            if request is None:
                raise SurplusReplies(job, len(job.replies) - number)
            request = episode.receive(reply)
        return Replayed(episode, request)


def replay_to_level(job: EpisodeJob, level: int) -> Episode | None:
    """The episode just before the agent's first reply at a level; None if it did not reach the level."""
    with _playing(job):
        episode = Episode(episode_setup(job.task, job.scenario, job.settings, job.pressure))
        episode.start()
        for reply in job.replies:
            if episode.level == level or episode.decided:
                break
            episode.receive(reply)
    return episode if episode.level == level and not episode.decided else None
