"""The plan of an experiment: tasks, calls and cost of each cell, and power by simulation."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from propensitybench.engine import Price
from propensitybench.engine.plan import Range, plan_run
from propensitybench.errors import BadInput
from propensitybench.experiments.design import Experiment
from propensitybench.experiments.simulation import Board, boards, simulate
from propensitybench.simulated import profile

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
    calls: Range
    usd: Range | None


class CausePower(msgspec.Struct, frozen=True):
    """How often simulated experiments claim each effect.

    Attributes:
        agent: whose cause is known.
        claimed: share of the experiments that claim an effect, by its name.
    """

    agent: str
    experiments: int
    claimed: dict[str, float]


class ExperimentPlan(msgspec.Struct, frozen=True):
    """The plan of an experiment.

    Attributes:
        digest: of the design, which is registered before the first call.
        power: of the arms' effects; empty if nothing was simulated.
        notes: what could not be estimated, and why.
    """

    digest: str
    cells: tuple[CellPlan, ...]
    tasks: int
    calls: Range
    usd: Range | None
    power: tuple[CausePower, ...]
    notes: tuple[str, ...]


def plan_experiment(experiment: Experiment, replicates: int, price: Price | None = None) -> ExperimentPlan:
    """Plans an experiment, without sending anything.

    Args:
        experiment: the design.
        replicates: experiments to simulate for the power.
        price: of every model; None looks them up.

    Raises:
        BadInput: a cell cannot be played.
    """
    cells = []
    for cell in experiment.cells:
        plan = plan_run(cell.spec, Path("(not made)") / cell.name, price)
        cells.append(CellPlan(cell.name, plan.tasks, plan.calls, plan.usd))
    notes: list[str] = []
    usd = [cell.usd for cell in cells if cell.usd is not None]
    return ExperimentPlan(
        digest=experiment.digest,
        cells=tuple(cells),
        tasks=sum(cell.tasks for cell in cells),
        calls=_sum([cell.calls for cell in cells]),
        usd=_sum(usd) if len(usd) == len(cells) else None,
        power=tuple(_power(experiment, replicates, notes)),
        notes=tuple(notes),
    )


def _sum(ranges: Sequence[Range]) -> Range:
    return Range(sum(one.low for one in ranges), sum(one.high for one in ranges))


def _power(experiment: Experiment, replicates: int, notes: list[str]) -> "list[CausePower]":
    first = experiment.cells[0].model
    if not replicates:
        return []
    ready = boards([cell for cell in experiment.cells if cell.model == first])
    try:
        return [_claims(experiment, ready, agent, replicates) for agent in AGENTS]
    except BadInput as error:
        notes.append(f"power: not simulated ({error})")
        return []


def _claims(experiment: Experiment, ready: Sequence[Board], agent: str, replicates: int) -> CausePower:
    counts: Counter[str] = Counter()
    names: dict[str, None] = {}
    for seed in range(replicates):
        analysis = simulate(experiment, ready, profile(agent), seed)
        names |= dict.fromkeys(one.name for one in analysis.effects)
        counts.update(one.name for one in analysis.effects if one.claimed)
    return CausePower(agent, replicates, {name: counts[name] / replicates for name in names})
