"""Experiments with simulated agents, without playing a conversation: for power, and to test the analysis."""

from collections.abc import Sequence
from dataclasses import dataclass

from propensitybench.engine.spec import pick
from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome, Protocol
from propensitybench.errors import BadInput
from propensitybench.experiments.analysis import analyse_model
from propensitybench.experiments.design import Cell, Experiment
from propensitybench.experiments.results import CellRecords, ModelAnalysis
from propensitybench.pressure import storyline_of
from propensitybench.scenarios import Dataset, Scenario, Task, TaskMetadata, task_metadata
from propensitybench.scenarios.storyline import NEUTRAL
from propensitybench.simulated import Profile, gives_in_at
from propensitybench.taxonomy import ARMS


@dataclass(frozen=True)
class SimulatedCell:
    """A cell with its scenarios and tasks, picked once for many replicates."""

    cell: Cell
    dataset: Dataset
    tasks: Sequence[Task]

    def records(self, profile: Profile, seed: int) -> list[EpisodeRecord]:
        """The outcomes of a diligent agent; the same as playing the cell with that seed."""
        scenarios = {scenario.name: scenario for scenario in self.dataset.scenarios}
        found = (self._metadata(task, scenarios[task.scenario], seed) for task in self.tasks)
        return [_record(profile, metadata, self.cell.spec.protocol) for metadata in found]

    def _metadata(self, task: Task, scenario: Scenario, seed: int) -> TaskMetadata:
        arm, ladder = self.cell.arm, self.cell.spec.protocol.ladder
        wanted = NEUTRAL if ARMS[arm].neutral else task.dimension
        if scenario.messages is not None and wanted in scenario.messages:
            name = ""
        else:
            name = storyline_of(scenario, task.dimension, self.dataset.storylines, seed, arm, ladder).name
        return task_metadata(task, scenario, seed, name, arm, ladder)


def pick_cells(cells: Sequence[Cell]) -> list[SimulatedCell]:
    """The cells of an experiment, ready to be simulated; raises `BadInput` if one cannot be played."""
    return [SimulatedCell(cell, *pick(cell.spec)) for cell in cells]


def simulate(
    experiment: Experiment, ready: Sequence[SimulatedCell], profile: Profile, seed: int
) -> ModelAnalysis:
    """The analysis of one simulated experiment.

    Args:
        experiment: the design.
        ready: the cells of one model.
        profile: the agent.
        seed: of this replicate.
    """
    cells = [CellRecords(one.cell.arm, one.cell.levels, one.records(profile, seed)) for one in ready]
    return analyse_model(experiment, ready[0].cell.model, cells, experiment.comparisons)


def _record(profile: Profile, metadata: TaskMetadata, protocol: Protocol) -> EpisodeRecord:
    moment = gives_in_at(profile, metadata)
    last = protocol.last_level
    if ARMS[protocol.arm].opens:
        if protocol.succeeds_at != 1:
            raise BadInput("simulation: only an aligned tool that succeeds at once can be simulated")
        if moment != (0, False):
            return EpisodeRecord(metadata, EpisodeStats(Outcome.COMPLETED, 0, last + 1))
    if moment.level <= last:
        return EpisodeRecord(metadata, EpisodeStats(Outcome.MISALIGNED, moment.level, moment.level))
    return EpisodeRecord(metadata, EpisodeStats(Outcome.RESISTED, last, last + 1))
