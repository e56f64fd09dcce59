"""Simulated episodes under the hierarchical model, and the calibration of its fit (extra ``bayes``):

    python -m validation.hierarchical ranks 120

`ranks`: simulation-based calibration (Talts et al. 2018, arXiv 1804.06788), parameters drawn from the priors.
`coverage`: 95 % intervals for fixed spreads and trends, 120 scenarios under six dimensions.
`rare`: the fit of an agent that rarely gives in, as JSON (docs/metrics.md, "Two samplers, one posterior").
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from propensitybench.metrics.hierarchical import fit
from propensitybench.metrics.hierarchical_model import (
    Draws,
    HierarchicalData,
    data_of,
    group_propensities,
    hazards,
    sample,
)
from propensitybench.metrics.table import LEVELS, Table
from validation.populations import Layout, table_of_levels

Floats = NDArray[np.float64]
# Nearly independent draws: 100 of 400.
DRAWS, THINNING = 400, 4
BINS = 10
SEED = 20
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

    def draws(self, levels: int) -> Draws:
        """The first levels' parameters as a single draw."""
        spreads = zip(("sd workspace", "sd capability", "sd scenario"), self.spreads[:, None], strict=True)
        return {
            "level": self.level[None, :levels],
            "domain": self.domain[None],
            "dimension": self.dimension[None],
            "workspace": self.workspace[None],
            "capability": self.capability[None],
            **dict(spreads),
        }


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


def quantities(draws: Draws, data: HierarchicalData) -> dict[str, Floats]:
    """What is calibrated, by name. Levels that nobody reached are not in it."""
    at_risk, _, propensity = hazards(draws)
    level = draws["level"]
    later = np.arange(1, data.levels) - data.levels / 2
    return {
        **{name: values for name, values in draws.items() if name.startswith("sd ")},
        "level 0": level[:, 0],
        "level 1": level[:, 1],
        "pressure": level[:, 1:].mean(axis=1) - level[:, 0],
        "trend": level[:, 1:] @ later / max(1, (later**2).sum()),
        "domain": draws["domain"][:, 0],
        "dimension": draws["dimension"][:, 0],
        "workspace": draws["workspace"][:, 0],
        "capability": draws["capability"][:, 0],
        "hazard at risk": at_risk[:, 1],
        "propensity": propensity,
        "propensity of a capability": group_propensities(draws, data, "capability")[:, 0],
    }


def posterior(table: Table, seed: int) -> tuple[Draws, HierarchicalData]:
    """Nearly independent draws."""
    data = data_of(table)
    draws, _ = sample(data, seed, DRAWS, chains=1)
    return {name: values[::THINNING] for name, values in draws.items()}, data


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
        draws, data = posterior(play(truth, layout, rng), number)
        true = quantities(truth.draws(data.levels), data)
        yield quantities(draws, data), {name: float(value[0]) for name, value in true.items()}


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


def print_ranks(count: int) -> None:
    """The test of each quantity, and how often its 90 % and 50 % intervals hold the truth."""
    pairs = list(replicates(small_layout(), count, SEED))
    found, narrowed = ranks(iter(pairs)), ranks(iter(pairs), narrowed=0.6)
    print(
        f"{count} replicates; p of uniform ranks; share in the 90 % and 50 % intervals; p if narrowed to 60 %"
    )
    for name, places in found.items():
        here = np.array(places)
        wide, narrow = ((here >= low) & (here <= 100 - low) for low in (5, 25))
        shares = f"{wide.mean():.3f}  {narrow.mean():.3f}"
        print(f"{name:28} p {p_uniform(places):.3f}  {shares}  {p_uniform(narrowed[name]):.1e}")


def print_coverage(count: int) -> None:
    """Coverage and bias by cell; a Monte-Carlo error of 2 points at 120 replicates."""
    layout = small_layout(120, 10, 8)
    for spreads, trend, task in (
        ((0.5, 0.3, 1.5), 0.0, 0.0),
        ((0.5, 0.3, 2.5), 0.1, 0.0),
        ((0.5, 0.3, 1.5), 0.0, 0.7),
        ((0.0, 0.0, 0.0), 0.0, 0.0),
    ):
        world = replace(world_of(layout, np.random.default_rng(1), spreads, trend), task_spread=task)
        held: dict[str, list[bool]] = {}
        off: dict[str, list[float]] = {}
        for draws, truth in replicates(layout, count, SEED, world=world):
            for name, values in draws.items():
                low, high = np.quantile(values, [0.025, 0.975])
                held.setdefault(name, []).append(low <= truth[name] <= high)
                off.setdefault(name, []).append(float(np.median(values)) - truth[name])
        print(f"spreads {spreads}, trend {trend}, task spread {task}; {count} replicates")
        for name in held:
            error = np.std(off[name]) / np.sqrt(count)
            print(
                f"  {name:28} covers {np.mean(held[name]):.3f}  bias {np.mean(off[name]):+.3f} ({error:.3f})"
            )
        sys.stdout.flush()


def print_rare(seed: int) -> None:
    """The fit of 39 misaligned calls in 720 tasks."""
    layout = small_layout(120, 10, 8)
    world = world_of(layout, np.random.default_rng(1), (0.5, 0.3, 1.5))
    table = play(replace(world, level=world.level - 2.0), layout, np.random.default_rng(2))
    print(msgspec.json.format(msgspec.json.encode(fit(table, seed=seed))).decode())


if __name__ == "__main__":
    subject, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    {"ranks": print_ranks, "coverage": print_coverage, "rare": print_rare}[subject](number)
