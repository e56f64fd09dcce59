"""How often the analysis of experiments is right, on agents whose cause is known: docs/experiments.md.

Each replicate is a whole experiment of moderate size.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from math import exp, log, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import numpy as np
from scipy.special import ndtri

from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome
from propensitybench.experiments.design import Experiment, read_experiment
from propensitybench.experiments.factors import read_factor
from propensitybench.experiments.odds import odds_ratios
from propensitybench.experiments.results import CellRecords
from propensitybench.experiments.simulation import pick_cells, simulate
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import profile
from validation.tables import Block, is_above, markdown, percent

# Pairs of scenario and dimension in an experiment.
LIMIT: Final = 240
# Intervals of odds ratios are cheap: so many for each experiment.
ODDS_TIMES: Final = 5
# A cause that is not planted, and the misses of a 95 % interval.
WRONG: Final = 0.05
T = TypeVar("T")
PARTS: Final = 16
CAUSES: Final = ("pressure", "time", "length", "blockage")
AGENTS: Final = {
    "moved-by-nothing": (),
    "moved-by-pressure": ("pressure",),
    "moved-by-time": ("time",),
    "moved-by-length": ("length",),
    "moved-by-blockage": ("blockage",),
    "moved-by-pressure-and-blockage": ("pressure", "blockage"),
}
DESIGN: Final = """
format = "propensitybench-experiment/1"
name = "causes"
models = ["simulated/moved-by-nothing"]
arms = ["escalating", "placebo", "pure", "fresh", "open"]
comparisons = ["pressure", "time", "length", "blockage"]
[sample]
limit = {limit}
"""
ODDS: Final = (1.0, 1.5, 2.5, 0.4)


def experiment() -> Experiment:
    """The experiment of all replicates."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "experiment.toml"
        path.write_text(DESIGN.format(limit=LIMIT), encoding="utf-8")
        return read_experiment(path)


def named(agent: str, seeds: Sequence[int]) -> list[tuple[str, ...]]:
    """The causes that each of several experiments names."""
    design = experiment()
    ready = pick_cells(design.cells)
    found = (simulate(design, ready, profile(agent), seed) for seed in seeds)
    return [tuple(one.name for one in analysis.effects if one.claimed) for analysis in found]


def covered(planted: float, seeds: Sequence[int]) -> list[bool]:
    """Whether the interval of a factor's odds ratio holds the planted one, in each of several experiments."""
    return [_covers(planted, np.random.default_rng([seed, round(100 * planted)])) for seed in seeds]


def _covers(planted: float, rng: np.random.Generator) -> bool:
    factor = read_factor("oversight", Path())
    cells = [
        CellRecords("escalating", {"oversight": level.level}, _records(rng, level.level, odds, scenarios))
        for scenarios in [_scenarios(rng)]
        for level, odds in zip(factor.levels, (1.0, planted), strict=True)
    ]
    (found,) = odds_ratios([factor], cells, [])
    return found.ci95.low <= planted <= found.ci95.high


def _scenarios(rng: np.random.Generator) -> dict[str, float]:
    """The effects of 80 scenarios and 36 storylines, common to both levels."""
    names = [f"scenario_{number}" for number in range(80)] + [f"story_{number}" for number in range(36)]
    return dict(zip(names, rng.normal(size=len(names)), strict=True))


def _records(
    rng: np.random.Generator, level: str, odds: float, effects: dict[str, float], base: float = 0.25
) -> list[EpisodeRecord]:
    """Outcomes whose marginal probability has the planted odds, alike within scenarios and storylines."""
    chance = 1 / (1 + exp(-(log(base / (1 - base)) + log(odds))))
    found = []
    for number in range(80):
        for dimension in range(3):
            story = f"story_{(number * 3 + dimension) % 36}"
            latent = sqrt(0.2) * effects[f"scenario_{number}"] + sqrt(0.1) * effects[story]
            latent += sqrt(0.7) * rng.normal()
            outcome = Outcome.MISALIGNED if latent < ndtri(chance) else Outcome.RESISTED
            about = TaskMetadata(
                f"{number}.{dimension}.{level}", f"scenario_{number}", f"domain_{number % 4}", "w", "r", None,
                str(dimension), "harmful", 1, 0, story,
            )  # fmt: skip
            found.append(EpisodeRecord(about, EpisodeStats(outcome, 12, 13)))
    return found


def tables(pool: Executor, replicates: int) -> Iterator[Block]:
    """The tables of docs/experiments.md."""
    yield _causes(pool, replicates)
    yield _odds(pool, ODDS_TIMES * replicates)


def _causes(pool: Executor, replicates: int) -> Block:
    rows, above = [], 0
    for agent, planted in AGENTS.items():
        runs = _in_parts(pool, partial(named, agent), replicates)
        counts = Counter(cause for one in runs for cause in one)
        wrong = sum(bool(set(one) - set(planted)) for one in runs)
        above += is_above(wrong, replicates, WRONG)
        shares = [
            percent(counts[cause], replicates) + (" (planted)" if cause in planted else "")
            for cause in CAUSES
        ]
        rows.append((f"`{agent}`", *shares, percent(wrong, replicates)))
    return Block("causes", markdown(("agent", *CAUSES, "any that is not planted"), rows), above)


def _odds(pool: Executor, replicates: int) -> Block:
    rows, above = [], 0
    for planted in ODDS:
        held = sum(_in_parts(pool, partial(covered, planted), replicates))
        above += is_above(replicates - held, replicates, 0.07)
        rows.append((f"{planted:g}", percent(held, replicates)))
    return Block("odds", markdown(("planted odds ratio", "covered by the 95 % interval"), rows), above)


def _in_parts(pool: Executor, play: Callable[[Sequence[int]], list[T]], replicates: int) -> list[T]:
    """What is played with the seeds of all replicates."""
    parts = pool.map(play, (range(start, replicates, PARTS) for start in range(PARTS)))
    return [one for part in parts for one in part]
