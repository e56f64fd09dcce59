"""Calibration of the hierarchical model: ``python -m validation.hierarchical_calibration ranks 1000``.

`ranks`: simulation-based calibration (Talts et al. 2018, arXiv 1804.06788), parameters drawn from the priors.
`coverage`: 95 % intervals for fixed spreads and trends, 120 scenarios under six dimensions.
"""

import sys
from dataclasses import replace

import numpy as np

from validation.hierarchical import p_uniform, ranks, replicates, small_layout, world_of

SEED = 20


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


if __name__ == "__main__":
    {"ranks": print_ranks, "coverage": print_coverage}[sys.argv[1]](int(sys.argv[2]))
