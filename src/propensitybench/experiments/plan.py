"""The plan of an experiment: tasks, calls and cost of each cell, and power by simulation."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.engine.plan import CostRange, plan_run
from propensitybench.errors import BadInput
from propensitybench.experiments.design import Experiment, read_experiment
from propensitybench.experiments.simulation import SimulatedCell, pick_cells
from propensitybench.experiments.simulation import simulate as simulate_experiment
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
        claimed: share of the experiments that claim an effect, by its name.
    """

    agent: str
    experiments: int
    claimed: dict[str, float]


class ExperimentPlan(msgspec.Struct, Tabular, frozen=True):
    """The plan of an experiment; as a table, a row for each cell.

    Attributes:
        digest: of the design, which is registered before the first call.
        cells: the plan of each.
        tasks: of all cells.
        calls: likewise.
        usd: likewise; None if a price is unknown.
        power: of the arms' effects; empty if nothing was simulated.
        notes: what could not be estimated, and why.
    """

    digest: str
    cells: tuple[CellPlan, ...]
    tasks: int
    calls: CostRange
    usd: CostRange | None
    power: tuple[CausePower, ...]
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
    design: str | os.PathLike[str], *, simulate: int = 20, price: Sequence[float] | None = None
) -> ExperimentPlan:
    """Plans an experiment, without sending anything.

    Args:
        design: the file of the design.
        simulate: experiments to simulate for the power of each effect.
        price: of every model, as a setting of a run; None looks them up.

    Raises:
        BadInput: the file is not a design, or a cell cannot be played.
    """
    experiment = read_experiment(Path(design))
    usual = None if price is None else read_execution(Settings(price=tuple(price))).price
    cells = []
    for cell in experiment.cells:
        plan = plan_run(cell.spec, Path("(not made)") / cell.name, usual)
        cells.append(CellPlan(cell.name, plan.tasks, plan.calls, plan.usd))
    notes: list[str] = []
    usd = [cell.usd for cell in cells if cell.usd is not None]
    return ExperimentPlan(
        digest=experiment.digest,
        cells=tuple(cells),
        tasks=sum(cell.tasks for cell in cells),
        calls=_sum([cell.calls for cell in cells]),
        usd=_sum(usd) if len(usd) == len(cells) else None,
        power=tuple(_power(experiment, simulate, notes)),
        notes=tuple(notes),
    )


def _sum(ranges: Sequence[CostRange]) -> CostRange:
    return CostRange(sum(one.low for one in ranges), sum(one.high for one in ranges))


def _power(experiment: Experiment, replicates: int, notes: list[str]) -> list[CausePower]:
    first = experiment.cells[0].model
    if not replicates:
        return []
    ready = pick_cells([cell for cell in experiment.cells if cell.model == first])
    try:
        return [_claims(experiment, ready, agent, replicates) for agent in AGENTS]
    except BadInput as error:
        notes.append(f"power: not simulated ({error})")
        return []


def _claims(
    experiment: Experiment, ready: Sequence[SimulatedCell], agent: str, replicates: int
) -> CausePower:
    counts: Counter[str] = Counter()
    names: dict[str, None] = {}
    for seed in range(replicates):
        analysis = simulate_experiment(experiment, ready, profile(agent), seed)
        names |= dict.fromkeys(one.name for one in analysis.effects)
        counts.update(one.name for one in analysis.effects if one.claimed)
    return CausePower(agent, replicates, {name: counts[name] / replicates for name in names})
