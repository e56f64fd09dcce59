"""Runs that were stopped, where episodes that give in may be slower or quicker than the others."""

from collections.abc import Sequence
from functools import partial
from heapq import heapreplace
from math import nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Flags
from propensitybench.metrics.compare import paired
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import ConfidenceInterval, Interval
from propensitybench.metrics.measures import MEASURES
from propensitybench.metrics.survival import survival_of
from propensitybench.metrics.table import LEVELS, Table
from validation.cells import Cell, Draw, Result, Sheet, covers
from validation.coverage.means import COMPETENT, work
from validation.coverage.shares import percent
from validation.populations import (
    TASK_SPREAD,
    Floats,
    Layout,
    Work,
    agent_of,
    play_tasks,
    survival,
    table_of_levels,
)

Levels = NDArray[np.int64]

SPREAD: Final = 1.5
DOMAINS: Final = 4
# How many times as long a level takes in an episode that will give in.
SLOWNESS: Final = {"as quick": 1.0, "quicker": 0.5, "slower": 2.0, "much slower": 4.0}


class Setting(NamedTuple):
    """A run and its end.

    Attributes:
        tasks: their number; each is of a scenario of its own, and domains take turns.
        share: the propensity.
        speed: of episodes that will give in, see `SLOWNESS`.
        in_flight: number of episodes at a time.
        part: of the whole work, after which the run is stopped.
    """

    tasks: int
    share: float
    speed: str
    in_flight: int
    part: float


class Stopped(NamedTuple):
    """The tasks of a stopped run, in their order.

    Attributes:
        levels: of the misaligned call if all had gone on, 13 for none.
        begun: whether the first reply had come.
        seen: number of levels at which an episode in flight was at risk, -1 for any other.
        earliest: the level that it had reached.
    """

    levels: Levels
    begun: Flags
    seen: Levels
    earliest: Levels


def stop(setting: Setting, rng: np.random.Generator) -> Stopped:
    """Plays a run and stops it.

    A level takes 2 to 6 replies, level 0 two more, a reply a gamma time, and a misaligned call comes at any
    time of its level. Tasks are begun in their order, each once a place is free.
    """
    count = setting.tasks
    frailty = rng.normal(0, SPREAD, count) + rng.normal(0, TASK_SPREAD, count)
    levels = play_tasks(agent_of(setting.share, SPREAD), frailty, rng)
    gives_in = levels < LEVELS
    turns = rng.integers(2, 7, (count, LEVELS))
    turns[:, 0] += 2
    slowness = np.where(gives_in, SLOWNESS[setting.speed], 1.0)[:, None]
    first = slowness * rng.gamma(4, 0.25, turns.shape)
    took = first + slowness * rng.gamma(4 * (turns - 1), 0.25)
    last = np.minimum(levels, LEVELS - 1)[:, None]
    is_last = (np.arange(LEVELS) == last) & gives_in[:, None]
    took = np.where(is_last, np.maximum(first, rng.random((count, 1)) * took), took)
    over = np.cumsum(took, axis=1)
    whole = np.take_along_axis(over, last, axis=1)[:, 0]
    start = starts(whole, setting.in_flight)
    played = np.clip(end_of(start, whole, setting.part) - start, 0, whole)[:, None]
    complete = (over <= played).sum(axis=1)
    heard = (played - (over - took) > first).sum(axis=1)
    ended = played[:, 0] == whole
    begun = ended | (heard > 0)
    seen = np.where(begun & ~ended, np.minimum(heard, LEVELS - 1), -1)
    return Stopped(levels, begun, seen, np.minimum(complete, LEVELS - 1))


def starts(whole: Floats, in_flight: int) -> Floats:
    """When each task begins, given how long it takes."""
    free, begins = [0.0] * in_flight, []
    for took in whole.tolist():
        begins.append(free[0])
        heapreplace(free, free[0] + took)
    return np.array(begins)


def end_of(start: Floats, whole: Floats, part: float) -> float:
    """The time at which this part of the work is done."""
    low, high = 0.0, float((start + whole).max())
    for _ in range(50):
        middle = (low + high) / 2
        done = float(np.clip(middle - start, 0, whole).sum()) >= part * float(whole.sum())
        low, high = (low, middle) if done else (middle, high)
    return high


def stopped_table(run: Stopped, rows: Flags, done: Work | None = None) -> Table:
    """The table of these tasks of a run."""
    domain = np.array([f"d{place % DOMAINS}" for place in range(len(rows))])[rows]
    return table_of_levels(
        run.levels[rows, None],
        Layout(domain, domain, domain),
        run.seen[rows, None],
        earliest=run.earliest[rows, None],
        work=None if done is None else Work(*(column[rows] for column in done)),
    )


def stopped_run(setting: Setting, rng: np.random.Generator) -> Result:
    run = stop(setting, rng)
    # Every domain has as many tasks.
    truth = float((run.levels < LEVELS).mean())
    begun, ended = run.begun, run.begun & (run.seen < 0)
    table, done = (stopped_table(run, rows) for rows in (begun, ended))
    terms = propensity_terms(table)
    found = estimate(table, terms, "")
    weighted, complete = (
        table.measure(terms._replace(ends=None)).interval(),
        done.measure(propensity_terms(done)).interval(),
    )
    return {
        "scored": float(ended.sum()),
        "in flight": float(begun.sum() - ended.sum()),
        "propensity": nan if found.value is None else 100 * found.value,
        "covers": covers(found.ci95, setting.share),
        "covers the run": covers(found.ci95, truth),
        "width": nan if found.ci95 is None else 100 * (found.ci95.high - found.ci95.low),
        "weights alone": covered(weighted, setting.share),
        "complete case": covered(complete, setting.share),
    }


def covered(found: ConfidenceInterval, truth: float) -> float:
    """100 if an interval that is not ours covers, 0 if not, NaN if there is none."""
    return nan if found.interval is None else 100.0 * (found.interval.low <= truth <= found.interval.high)


def other_run(setting: Setting, rng: np.random.Generator) -> Result:
    """Other numbers of a run, and its difference from one in which those that give in are as quick."""
    run, other = stop(setting, rng), stop(setting._replace(speed="as quick"), rng)
    entered = np.minimum(run.levels + 1, LEVELS).astype(np.float64)[:, None]
    table = stopped_table(run, run.begun, work(entered, rng))
    curve = survival(agent_of(setting.share, SPREAD), SPREAD)
    hazards = 1 - curve / np.concatenate([[1.0], curve[:-1]])
    found = survival_of(table)
    truth = {
        "propensity_zero": float(1 - curve[0]),
        "withstood": float(curve.sum()),
        "competent": COMPETENT,
        "propensity_competent": setting.share,
    }
    both = run.begun & other.begun
    difference = paired(stopped_table(other, both), stopped_table(run, both), flips=0)
    return {
        **{
            name: covers(table.measure(MEASURES[name].terms(table)).ci95, value)
            for name, value in truth.items()
        },
        "by level 6": covers(table.measure(propensity_terms(table, 6)).ci95, float(1 - curve[6])),
        "survival_band": inside(found.survival_band, curve),
        "hazard_band": inside(found.hazard_band, hazards),
        "difference": covers(difference.propensity.ci95, 0.0),
        "difference, levels": covers(difference.withstood.ci95, 0.0),
    }


def inside(band: Sequence[Interval | None], truth: Floats) -> Draw:
    """Whether all intervals of a band cover; levels without one are left out."""
    shown = [(one, value) for one, value in zip(band, truth.tolist(), strict=True) if one is not None]
    if not shown:
        return Draw(None)
    width = float(np.mean([one.high - one.low for one, _ in shown]))
    return Draw(all(one.low <= value <= one.high for one, value in shown), width)


SETTINGS: Final = [
    Setting(tasks, share, speed, in_flight, part)
    for tasks, parts in ((120, (0.2, 0.6, 0.9)), (600, (0.2, 0.6)))
    for share in (0.12, 0.4)
    for speed in SLOWNESS
    for in_flight in (8, 64)
    for part in parts
    if tasks == 120 or in_flight == 64
]
STOPPED: Final = Sheet(
    "Stopped runs",
    ("tasks", "truth", "those that give in", "at a time", "stopped after"),
    [
        Cell(
            (str(one.tasks), percent(one.share), one.speed, str(one.in_flight), percent(one.part)),
            partial(stopped_run, one),
            0.5,
        )
        for one in SETTINGS
    ],
)
STOPPED_OTHERS: Final = Sheet(
    "Stopped runs, other numbers",
    ("truth", "those that give in", "stopped after"),
    [
        Cell(
            (percent(share), speed, percent(part)),
            partial(other_run, Setting(240, share, speed, 64, part)),
            0.5,
        )
        for share in (0.12, 0.4)
        for speed in SLOWNESS
        for part in (0.4, 0.9)
    ],
)
