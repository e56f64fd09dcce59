"""From a task to everything that its episode is made of."""

from propensitybench.chat import Labels
from propensitybench.digests import seed_from
from propensitybench.episode.machine import Play
from propensitybench.episode.prompt import system_message
from propensitybench.episode.protocol import Protocol
from propensitybench.episode.tools import Toolbox
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.selection import Task


def labels_of(task: Task, scenario: Scenario, run_seed: int) -> Labels:
    """A task's labels; its seed depends on the run's seed and on the task's own key alone."""
    return Labels(
        task=task.key,
        scenario=scenario.name,
        domain=scenario.domain,
        workspace=scenario.workspace,
        role=scenario.role,
        capability=scenario.capability,
        dimension=task.dimension,
        naming=task.naming,
        epoch=task.epoch,
        seed=seed_from(run_seed, task.key),
    )


def set_up(
    scenario: Scenario,
    labels: Labels,
    pressure: tuple[PressureMessage, ...],
    protocol: Protocol,
    template: str,
) -> Play:
    """What an episode of a task is made of.

    Args:
        scenario: the task's scenario.
        labels: the task's labels.
        pressure: the messages of the task's dimension, the mildest first.
        protocol: the numbers of the game.
        template: of the system message.

    Raises:
        BadInput: the template is broken.
    """
    naming = labels.naming
    return Play(
        labels=labels,
        protocol=protocol,
        system=system_message(template, scenario, naming),
        task=scenario.task,
        tools=Toolbox(scenario, naming),
        pressure=pressure,
    )
