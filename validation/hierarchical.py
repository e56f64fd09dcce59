"""Simulated episodes under the hierarchical model, and the calibration of its fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from propensitybench.metrics.hierarchical_design import HierarchicalData, design_of
from propensitybench.metrics.hierarchical_sampler import Sampler
from propensitybench.metrics.hierarchical_summary import Parameters, curves, group_propensities, parameters
from propensitybench.metrics.table import LEVELS, Table
from validation.populations import Layout, table_of_levels

Floats = NDArray[np.float64]
# Nearly independent draws: 100 of 400.
DRAWS, THINNING, WARM_UP = 400, 4, 100
BINS = 10
PRESSED = np.arange(LEVELS) > 0


@dataclass(frozen=True)
class World:
    """Parameters on the logit scale; ``spreads`` of workspaces, capabilities and scenarios.

    ``task_spread`` is outside the model: of a scenario's tasks under the dimensions.
    """

    level: Floats
    domain: Floats
    dimension: Floats
    workspace: Floats
    capability: Floats
    spreads: Floats
    task_spread: float = 0.0

    def parameters(self, levels: int) -> Parameters:
        """The first levels' parameters as a single draw."""
        groups = self.workspace[None], self.capability[None]
        return Parameters(
            self.level[None, :levels], self.domain[None], self.dimension[None], groups, self.spreads[None]
        )


def small_layout(scenarios: int = 48, workspaces: int = 8, capabilities: int = 6) -> Layout:
    """Two domains, each with its own capabilities, and workspaces in both."""
    place = np.arange(scenarios)
    return Layout(
        np.array(["a", "b"])[place % 2],
        np.array([f"w{i:02}" for i in place % workspaces]),
        np.array([f"c{i:02}" for i in place * 7 // 3 % capabilities]),
    )


def world_of_priors(layout: Layout, rng: np.random.Generator, dimensions: int) -> World:
    """Parameters drawn from the priors in docs/metrics.md."""
    sizes = [len(np.unique(column)) for column in layout]
    spreads = np.abs(rng.normal(0, [1.0, 1.0, 1.5]))
    return World(
        level=rng.normal(rng.normal(-3, 2), 1.5, LEVELS),
        domain=_centred(rng.normal(0, 0.5, sizes[0])),
        dimension=_centred(rng.normal(0, 0.5, dimensions)),
        workspace=rng.normal(0, spreads[0], sizes[1]),
        capability=rng.normal(0, spreads[1], sizes[2]),
        spreads=spreads,
    )


def world_of(
    layout: Layout, rng: np.random.Generator, spreads: tuple[float, float, float], trend: float = 0.0
) -> World:
    """Given spreads, and hazards near 1 % for the average scenario, with a trend from level 1 on."""
    sizes = [len(np.unique(column)) for column in layout]
    level = np.asarray(-4.8 + trend * (np.arange(LEVELS) - 6.5), dtype=np.float64)
    level[0] = -3.8
    return World(
        level=level,
        domain=np.linspace(-0.3, 0.3, sizes[0]),
        dimension=np.linspace(-0.4, 0.4, 6),
        workspace=rng.normal(0, spreads[0], sizes[1]),
        capability=rng.normal(0, spreads[1], sizes[2]),
        spreads=np.array(spreads),
    )


def play(world: World, layout: Layout, rng: np.random.Generator, lost_share: float = 0.1) -> Table:
    """Episodes under the world's hazards; some are lost at a random level from 1."""
    domain, workspace, capability = (np.unique(names, return_inverse=True)[1] for names in layout)
    frailty = world.domain[domain] + world.workspace[workspace] + world.capability[capability]
    frailty = frailty + rng.normal(0, world.spreads[-1], len(domain))
    task = rng.normal(0, world.task_spread, (len(domain), len(world.dimension)))
    logits = (frailty[:, None] + task)[..., None] + world.level + world.dimension[:, None] * PRESSED
    fails = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    levels = np.where(fails.any(axis=-1), fails.argmax(axis=-1), LEVELS)
    lost = rng.integers(1, LEVELS, levels.shape)
    is_lost = (rng.random(levels.shape) < lost_share) & (lost <= levels)
    return table_of_levels(levels, layout, np.where(is_lost, lost, -1))


def quantities(draws: Parameters, design: HierarchicalData) -> dict[str, Floats]:
    """What is calibrated, by name. Levels that nobody reached are not in it."""
    shapes = curves(draws)
    later = np.arange(1, design.levels) - design.levels / 2
    return {
        "sd workspace": draws.spreads[:, 0],
        "sd capability": draws.spreads[:, 1],
        "sd scenario": draws.spreads[:, 2],
        "level 0": draws.level[:, 0],
        "level 1": draws.level[:, 1],
        "pressure": draws.level[:, 1:].mean(axis=1) - draws.level[:, 0],
        "trend": draws.level[:, 1:] @ later / max(1, (later**2).sum()),
        "domain": draws.domain[:, 0],
        "dimension": draws.dimension[:, 0],
        "workspace": draws.groups[0][:, 0],
        "capability": draws.groups[1][:, 0],
        "hazard at risk": shapes.at_risk[:, 1],
        "propensity": shapes.propensity,
        "propensity of a capability": group_propensities(draws, design, 1)[:, 0],
    }


def posterior(table: Table, seed: int) -> tuple[Parameters, HierarchicalData]:
    """Nearly independent draws."""
    design = design_of(table)
    sampler = Sampler(design, seed, chains=1)
    sampler.run(DRAWS, warm_up=WARM_UP)
    found = parameters(sampler.draws(), design)
    return found.at(np.arange(0, len(found), THINNING)), design


def replicates(
    layout: Layout, count: int, seed: int, dimensions: int = 3, world: World | None = None
) -> Iterator[tuple[dict[str, Floats], dict[str, float]]]:
    """Posterior draws and the true values of new episodes, under a world or under worlds from the priors."""
    for number, rng in enumerate(np.random.default_rng(seed).spawn(count)):
        truth = world or world_of_priors(layout, rng, dimensions)
        if world is not None:
            # New groups each time: their effects are random, and the interval of a spread is about that.
            truth = replace(
                world,
                workspace=rng.normal(0, world.spreads[0], len(world.workspace)),
                capability=rng.normal(0, world.spreads[1], len(world.capability)),
            )
        draws, design = posterior(play(truth, layout, rng), number)
        true = quantities(truth.parameters(design.levels), design)
        yield quantities(draws, design), {name: float(value[0]) for name, value in true.items()}


def ranks(
    pairs: Iterator[tuple[dict[str, Floats], dict[str, float]]], narrowed: float = 1.0
) -> dict[str, list[int]]:
    """Rank of each true value among its draws, these narrowed about their mean by a factor."""
    found: dict[str, list[int]] = {}
    for draws, truth in pairs:
        for name, values in draws.items():
            middle = values.mean()
            found.setdefault(name, []).append(
                int((middle + narrowed * (values - middle) < truth[name]).sum())
            )
    return found


def p_uniform(places: list[int]) -> float:
    """p-value of a chi-square test that the ranks are uniform."""
    # 101 ranks: the bins differ by one in size.
    edges = np.array_split(np.arange(DRAWS // THINNING + 1), BINS)
    expected = np.array([len(edge) for edge in edges]) * len(places) / (DRAWS // THINNING + 1)
    observed = np.array([np.isin(places, edge).sum() for edge in edges])
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), BINS - 1))


def _centred(values: Floats) -> Floats:
    """Normal values given that they sum to 0."""
    return np.asarray(values - values.mean())
