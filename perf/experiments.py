"""How often the analysis of experiments is right, on agents whose cause is known: docs/experiments.md.

Each replicate is a whole experiment of moderate size. ``--write`` puts the tables into the document.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import exp, log, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

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

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "experiments.md"
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


def experiment(limit: int) -> Experiment:
    """The experiment of all replicates."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "experiment.toml"
        path.write_text(DESIGN.format(limit=limit), encoding="utf-8")
        return read_experiment(path)


def named(limit: int, agent: str, seeds: Sequence[int]) -> list[tuple[str, ...]]:
    """The causes that each of several experiments names."""
    design = experiment(limit)
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


def split(number: int, parts: int) -> list[range]:
    """The seeds of the replicates, in parts for processes."""
    return [range(start, number, parts) for start in range(parts)]


def causes_table(pool: ProcessPoolExecutor, limit: int, replicates: int) -> str:
    """How often each cause is named, by agent."""
    lines = ["| agent | " + " | ".join(CAUSES) + " | any that is not planted |", "| --- " * 6 + "|"]
    for agent, planted in AGENTS.items():
        runs = [one for part in pool.map(partial(named, limit, agent), split(replicates, 16)) for one in part]
        counts = Counter(cause for one in runs for cause in one)
        wrong = sum(bool(set(one) - set(planted)) for one in runs)
        shares = [
            f"{counts[cause] / len(runs):.3f}{' (planted)' if cause in planted else ''}" for cause in CAUSES
        ]
        lines.append(f"| `{agent}` | {' | '.join(shares)} | {wrong / len(runs):.3f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def odds_table(pool: ProcessPoolExecutor, replicates: int) -> str:
    """Coverage of the odds ratio's interval."""
    lines = ["| planted odds ratio | covered by the 95 % interval |", "| --- | --- |"]
    for planted in ODDS:
        runs = [one for part in pool.map(partial(covered, planted), split(replicates, 16)) for one in part]
        share = sum(runs) / len(runs)
        error = sqrt(share * (1 - share) / len(runs))
        lines.append(f"| {planted:g} | {share:.3f} (Monte-Carlo error {error:.3f}) |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Runs the simulations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200, help="experiments for each agent")
    parser.add_argument("--odds-replicates", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=240, help="pairs of scenario and dimension")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/experiments.md")
    arguments = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        tables = {
            "odds": odds_table(pool, arguments.odds_replicates),
            "causes": causes_table(pool, arguments.limit, arguments.replicates),
        }
    if arguments.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        for name, table in tables.items():
            begin, end = f"<!-- {name}: perf/experiments.py -->\n", f"<!-- end {name} -->"
            before, _, rest = text.partition(begin)
            text = before + begin + table + "\n" + end + rest.partition(end)[2]
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
