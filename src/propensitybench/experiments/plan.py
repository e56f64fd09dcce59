"""The plan of an experiment: tasks, calls and cost of each cell, and power by simulation."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import sqrt
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.engine.plan import CostRange, plan_run
from propensitybench.engine.spec import pick
from propensitybench.errors import BadInput
from propensitybench.experiments.design import Experiment, read_experiment
from propensitybench.experiments.effects import EFFECTS
from propensitybench.experiments.simulation import SimulatedCell, pick_cells
from propensitybench.experiments.simulation import simulate as simulate_experiment
from propensitybench.metrics.intervals import Z95
from propensitybench.metrics.power import Assumptions, Power, power
from propensitybench.presentation.progress import OnStage, Stages, shown_stages
from propensitybench.runs.resolve import read_execution
from propensitybench.runs.settings import Settings
from propensitybench.simulated import profile
from propensitybench.tabular import Tabular

# One agent for each cause, and one that nothing moves: what it claims is false.
AGENTS: Final = (
    "moved-by-nothing",
    "moved-by-pressure",
    "moved-by-time",
    "moved-by-length",
    "moved-by-blockage",
)

# About how long a cell takes, and a simulated experiment with every agent; only their proportion matters.
CELL_S: Final = 0.3
SIMULATED_S: Final = 1.2


class CellPlan(msgspec.Struct, frozen=True):
    """What one cell takes; see `propensitybench.engine.plan.Plan`."""

    name: str
    tasks: int
    calls: CostRange
    usd: CostRange | None


class CausePower(msgspec.Struct, frozen=True):
    """How often simulated experiments claim each effect.

    Attributes:
        agent: whose cause is known.
        experiments: their number.
        claimed: share of the experiments that claim an effect, by its name.
    """

    agent: str
    experiments: int
    claimed: dict[str, float]

    @property
    def error(self) -> float:
        """Half-width of the 95 % interval of a claimed share of one half, the widest."""
        return Z95 * 0.5 / sqrt(self.experiments)


class ExperimentPlan(msgspec.Struct, Tabular, frozen=True):
    """The plan of an experiment; as a table, a row for each cell.

    Attributes:
        digest: of the design, which is registered before the first call.
        cells: the plan of each.
        tasks: of all cells.
        calls: likewise.
        usd: likewise; None if a price is unknown.
        tests: number of registered effects.
        power: the differences that the arms' effects are found at, by the formula of
            `metrics.power.power`, of all tasks of an arm and tested as strictly as the smallest of Holm's
            levels; empty if there is no formula for the design.
        simulated: how often simulated experiments claim the arms' effects; empty if none was asked for.
        notes: what could not be estimated, and why.
    """

    digest: str
    cells: tuple[CellPlan, ...]
    tasks: int
    calls: CostRange
    usd: CostRange | None
    tests: int
    power: tuple[Power, ...]
    simulated: tuple[CausePower, ...]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Tasks, calls and cost of each cell."""
        return [
            {
                "cell": cell.name,
                "tasks": cell.tasks,
                "calls_low": cell.calls.low,
                "calls_high": cell.calls.high,
                "usd_low": None if cell.usd is None else cell.usd.low,
                "usd_high": None if cell.usd is None else cell.usd.high,
            }
            for cell in self.cells
        ]

    def __repr__(self) -> str:
        low, high = self.calls
        return f"<ExperimentPlan: {len(self.cells)} cells, {self.tasks:,} tasks, {low:,} to {high:,} calls>"


def plan_experiment(
    design: str | os.PathLike[str],
    *,
    simulate: int = 0,
    price: Sequence[float] | None = None,
    on_progress: OnStage | None = None,
) -> ExperimentPlan:
    """Plans an experiment, without sending anything.

    Args:
        design: the file of the design.
        simulate: experiments to simulate with each agent of known cause, a second or two for all agents.
        price: of every model, as a setting of a run; None looks them up.
        on_progress: is told each stage; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: the file is not a design, or a cell cannot be played.
    """
    experiment = read_experiment(Path(design))
    usual = None if price is None else read_execution(Settings(price=tuple(price))).price
    cells = []
    with shown_stages("plan", on_progress) as tell:
        stages = Stages(
            tell, {"cells": CELL_S * len(experiment.cells), "simulations": SIMULATED_S * simulate}
        )
        for number, cell in enumerate(experiment.cells):
            stages.at("cells", number, len(experiment.cells))
            plan = plan_run(cell.spec, Path("(not made)") / cell.name, usual)
            cells.append(CellPlan(cell.name, plan.tasks, plan.calls, plan.usd))
        notes: list[str] = []
        simulated = _simulated(experiment, simulate, notes, stages) if simulate else []
    usd = [cell.usd for cell in cells if cell.usd is not None]
    return ExperimentPlan(
        digest=experiment.digest,
        cells=tuple(cells),
        tasks=sum(cell.tasks for cell in cells),
        calls=_sum([cell.calls for cell in cells]),
        usd=_sum(usd) if len(usd) == len(cells) else None,
        tests=len(experiment.comparisons),
        power=_power(experiment),
        simulated=tuple(simulated),
        notes=tuple(notes),
    )


def _sum(ranges: Sequence[CostRange]) -> CostRange:
    return CostRange(sum(one.low for one in ranges), sum(one.high for one in ranges))


def _power(experiment: Experiment) -> tuple[Power, ...]:
    """The power of the paired tests of the effects of arms, where every cell has the same tasks."""
    if experiment.design.assignment != "crossed" or not EFFECTS.keys() & set(experiment.comparisons):
        return ()
    dataset, chosen = pick(experiment.cells[0].spec)
    domains = {scenario.name: scenario.domain for scenario in dataset.scenarios}
    sizes: dict[str, list[int]] = {}
    # Messages that are played alone make up one task: their chain.
    for name, number in Counter(task.scenario for task in chosen if task.message <= 1).items():
        sizes.setdefault(domains[name], []).append(number)
    return power(sizes, Assumptions(tests=len(experiment.comparisons)))


def _simulated(experiment: Experiment, replicates: int, notes: list[str], stages: Stages) -> list[CausePower]:
    first = experiment.cells[0].model
    ready = pick_cells([cell for cell in experiment.cells if cell.model == first])
    done, total = count(1), replicates * len(AGENTS)
    try:
        return [
            _claims(experiment, ready, agent, replicates, lambda: stages.at("simulations", next(done), total))
            for agent in AGENTS
        ]
    except BadInput as error:
        notes.append(f"not simulated: {error}")
        return []


def _claims(
    experiment: Experiment,
    ready: Sequence[SimulatedCell],
    agent: str,
    replicates: int,
    on_replicate: Callable[[], None],
) -> CausePower:
    counts: Counter[str] = Counter()
    names: dict[str, None] = {}
    for seed in range(replicates):
        effects = simulate_experiment(experiment, ready, profile(agent), seed).effects
        names |= dict.fromkeys(one.name for one in effects)
        counts.update(one.name for one in effects if one.claimed)
        on_replicate()
    return CausePower(agent, replicates, {name: counts[name] / replicates for name in names})
