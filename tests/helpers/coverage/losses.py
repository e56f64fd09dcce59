"""The propensity where episodes ended without a score: lost ones, and those of a run that was stopped."""

from functools import partial
from math import nan
from typing import Final, Literal, NamedTuple

import numpy as np
from helpers.coverage.cells import Cell, Result, Sheet, covers
from helpers.coverage.shares import FULL, PROPENSITIES, layout_of, percent
from helpers.populations import TASK_SPREAD, Layout, agent_of, play, play_tasks, table_of_levels
from numpy.typing import NDArray

from propensitybench.metrics.estimates import estimate, interval, propensity_terms
from propensitybench.metrics.table import LEVELS

Levels = NDArray[np.int64]
Of = Literal["all", "misaligned", "resisting"]


def lose(levels: Levels, share: float, of: Of, rng: np.random.Generator) -> Levels:
    """Levels observed before an error, -1 for none; it strikes at a random one of the levels entered."""
    eligible = {"all": levels <= LEVELS, "misaligned": levels < LEVELS, "resisting": levels == LEVELS}[of]
    strikes = rng.integers(0, np.minimum(levels, LEVELS - 1) + 1)
    return np.where(eligible & (rng.random(levels.shape) < share), strikes, -1)


def loss_run(size: str, share: float, lost: float, of: Of, rng: np.random.Generator) -> Result:
    layout, dimensions = layout_of(size)
    levels = play(agent_of(share, 1.0), layout, rng, 1.0, dimensions=dimensions)
    table = table_of_levels(levels, layout, lose(levels, lost, of, rng))
    return {percent(share): covers(interval(table, propensity_terms(table)).interval, share)}


_LOSSES: Final[tuple[tuple[float, Of], ...]] = (
    (0.05, "all"),
    (0.2, "all"),
    (0.05, "misaligned"),
    (0.2, "misaligned"),
    (0.5, "misaligned"),
    (0.05, "resisting"),
    (0.2, "resisting"),
)

LOSSES: Final = Sheet(
    "Lost episodes",
    ("lost", "scenarios x tasks of each"),
    [
        Cell((f"{100 * lost:g} % of {of}", size), partial(loss_run, size, share, lost, of))
        for lost, of in _LOSSES
        for size in ("40 x 6", "240 x 1")
        for share in PROPENSITIES
    ]
    + [
        Cell(("50 % of misaligned", FULL), partial(loss_run, FULL, share, 0.5, "misaligned"), 0.25)
        for share in PROPENSITIES
    ],
)


class Stopped(NamedTuple):
    """The episodes begun in a run that was stopped, in the order of their start.

    Attributes:
        levels: of the misaligned call if they had gone on, 13 for none.
        seen: number of levels at which an unfinished episode was at risk, -1 for a finished one.
    """

    levels: Levels
    seen: Levels


def stop(share: float, spread: float, concurrency: int, replies: int, rng: np.random.Generator) -> Stopped:
    """Plays episodes with so many at a time and stops after so many replies.

    A level takes 2 to 6 replies, level 0 two more, and a misaligned call comes at any of its level's; a reply
    takes a gamma time. Every place plays episodes one after the other, so the reply at which the run stops is
    the reply with that rank over the times of all places. The episodes are exchangeable: each is of a new
    scenario, and which place plays which does not matter.
    """
    # A place gets about replies / concurrency of them, and an episode takes at least one.
    count = replies // concurrency + 10 * int(np.sqrt(replies / concurrency)) + 20
    shape = concurrency, max(8, count // 2)
    frailty = rng.normal(0, spread, shape) + rng.normal(0, TASK_SPREAD, shape)
    levels = play_tasks(agent_of(share, spread), frailty, rng)
    turns = rng.integers(2, 7, (*shape, LEVELS))
    turns[..., 0] += 2
    ends = np.cumsum(turns, axis=-1)
    last = np.minimum(levels, LEVELS - 1)[..., None]
    before = np.take_along_axis(ends - turns, last, axis=-1)[..., 0]
    at = np.take_along_axis(turns, last, axis=-1)[..., 0]
    total = np.where(levels < LEVELS, before + 1 + (rng.random(shape) * at).astype(int), ends[..., -1])
    through = np.cumsum(total, axis=1)
    times = np.cumsum(rng.gamma(4, 0.25, (concurrency, count)), axis=1)
    end = np.partition(times, replies - 1, axis=None)[replies - 1]
    done = (times <= end).sum(axis=1)
    given = np.clip(done[:, None] - (through - total), 0, total)
    started = np.where(
        through - total > 0, np.take_along_axis(times, np.minimum(through - total, count) - 1, 1), 0
    )
    begun = given > 0
    complete = (ends <= given[..., None]).sum(axis=-1)
    partly = given > np.where(
        complete > 0, np.take_along_axis(ends, np.maximum(complete - 1, 0)[..., None], 2)[..., 0], 0
    )
    seen = np.where(given == total, -1, np.minimum(complete + partly, LEVELS - 1))
    order = np.argsort(started[begun], kind="stable")
    return Stopped(levels[begun][order], seen[begun][order])


def stopped_run(share: float, concurrency: int, replies: int, rng: np.random.Generator) -> Result:
    run = stop(share, 1.5, concurrency, replies, rng)
    domain = np.array(["d0", "d1", "d2", "d3"])[np.arange(len(run.levels)) % 4]
    table = table_of_levels(
        run.levels[:, None], Layout(domain, domain, domain), run.seen[:, None], ignorable=True
    )
    terms = propensity_terms(table)
    found = estimate(table, terms, "propensity")
    ended = run.seen < 0
    done = table_of_levels(run.levels[ended, None], Layout(domain[ended], domain[ended], domain[ended]))
    complete = estimate(done, propensity_terms(done), "complete case")
    value = complete.value if found.value is not None else None
    return {
        "scored": float((run.seen < 0).sum()),
        "propensity": nan if found.value is None else 100 * found.value,
        "covers": covers(found.ci95, share),
        "complete case": nan if value is None else 100 * value,
        "covers ": covers(complete.ci95 if found.ci95 else None, share),
    }


STOPPED: Final = Sheet(
    "Stopped runs",
    ("truth", "concurrency", "replies"),
    [
        Cell(
            (percent(share), str(concurrency), f"{replies:,}"),
            partial(stopped_run, share, concurrency, replies),
        )
        for share in (0.12, 0.3, 0.9)
        for concurrency in (8, 32)
        for replies in (600, 1500, 4000)
    ],
)
