"""The one factory of episode setups, for the engine, `play`, `--plan` and the Inspect adapter."""

import msgspec

from propensitybench.episode.machine import EpisodeSetup
from propensitybench.episode.prompt import built_in_template, forwarded, system_message
from propensitybench.episode.protocol import PAPER, Protocol
from propensitybench.episode.tools import Toolbox
from propensitybench.pressure import Chain
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.selection import Task, task_metadata


class EpisodeSettings(msgspec.Struct, frozen=True):
    """What all episodes of a run share.

    Attributes:
        seed: the run's seed, from which the seeds of its tasks are derived.
        protocol: the parameters of an episode.
        template: the system message's template.
    """

    seed: int = 0
    protocol: Protocol = PAPER
    template: str = msgspec.field(default_factory=built_in_template)


def episode_setup(task: Task, scenario: Scenario, settings: EpisodeSettings, pressure: Chain) -> EpisodeSetup:
    """Everything that the episode of a task needs.

    Args:
        task: the task to play.
        scenario: the task's scenario.
        settings: the run's settings.
        pressure: the pressure messages.

    Raises:
        BadInput: the template is broken.
    """
    protocol = settings.protocol
    opening = scenario.task
    if task.message:
        # In one message, because some endpoints refuse two user messages in a row.
        opening += "\n\n" + forwarded(pressure.messages[task.message - 1])
    return EpisodeSetup(
        metadata=task_metadata(
            task, scenario, settings.seed, pressure.storyline, protocol.arm, protocol.ladder
        ),
        protocol=protocol,
        system=system_message(settings.template, scenario, task.naming),
        task=opening,
        tools=Toolbox(scenario, task.naming, ask=protocol.ask),
        pressure=pressure.messages,
    )
