"""From a task to everything that its episode is made of: one factory for every way to play it."""

import msgspec

from propensitybench.episode.machine import EpisodeSetup
from propensitybench.episode.prompt import built_in_template, system_message
from propensitybench.episode.protocol import PAPER, Protocol
from propensitybench.episode.tools import Toolbox
from propensitybench.pressure import pressure_messages
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.selection import Task, task_metadata


class EpisodeSettings(msgspec.Struct, frozen=True):
    """What all episodes of a run share.

    Attributes:
        seed: of the run; the seeds of its tasks depend on it.
        protocol: the numbers of the game.
        template: of the system message.
    """

    seed: int = 0
    protocol: Protocol = PAPER
    template: str = msgspec.field(default_factory=built_in_template)


def episode_setup(
    task: Task,
    scenario: Scenario,
    settings: EpisodeSettings,
    pressure: tuple[PressureMessage, ...] | None = None,
) -> EpisodeSetup:
    """What an episode of a task is made of.

    Args:
        task: what is played.
        scenario: the task's scenario.
        settings: of the run.
        pressure: the messages of the task's dimension, the mildest first; None makes them.

    Raises:
        BadInput: the template is broken, or there are no messages for the dimension.
    """
    if pressure is None:
        pressure = pressure_messages(scenario, task.dimension, settings.seed)
    return EpisodeSetup(
        metadata=task_metadata(task, scenario, settings.seed),
        protocol=settings.protocol,
        system=system_message(settings.template, scenario, task.naming),
        task=scenario.task,
        tools=Toolbox(scenario, task.naming),
        pressure=pressure,
    )
