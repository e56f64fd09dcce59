"""Simulated judged transcripts whose truth, judge and sample for people are planted."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from propensitybench.metrics.arrays import Codes, Names, Numbers
from propensitybench.metrics.judged import MISSING, NOT_DRAWN, Judged

DOMAINS: Final = 4
# How the share of a category differs among domains: their mean is 1.
TILT: Final = (0.5, 0.8, 1.2, 1.5)


class World(NamedTuple):
    """What is planted.

    Attributes:
        shares: of the categories, mean over domains.
        errors: probability of the judge's label (column) given people's (row); one table, or one of each
            domain.
        scenarios: in all.
        tasks: of a scenario.
        alike: correlation of the tasks of a scenario, in the category and in whether the judge errs.
        gold: number of items that people label.
    """

    shares: tuple[float, ...]
    errors: Numbers
    scenarios: int = 252
    tasks: int = 6
    alike: tuple[float, float] = (0.3, 0.1)
    gold: int = 200

    def by_domain(self) -> Numbers:
        """The shares of each domain: those of all categories but the first are tilted."""
        shares = np.outer(TILT, self.shares)
        shares[:, 0] = 1 - shares[:, 1:].sum(axis=1)
        return shares


def binary(prevalence: float, sensitivity: float, specificity: float) -> World:
    """A world of the categories no (0) and yes (1)."""
    return World((1 - prevalence, prevalence), errors_of(sensitivity, specificity))


def errors_of(sensitivity: float, specificity: float) -> Numbers:
    """The errors of a judge of two categories."""
    return np.array([[specificity, 1 - specificity], [1 - sensitivity, sensitivity]])


class Transcripts(NamedTuple):
    """Transcripts with their true categories and a judge's labels."""

    domain: Names
    scenario: Names
    truth: Codes
    judge: Codes


def transcripts(world: World, rng: np.random.Generator) -> Transcripts:
    """Transcripts of new scenarios."""
    place = np.repeat(np.arange(world.scenarios), world.tasks)
    domain = place % DOMAINS
    alike, erring = world.alike
    truth = _labels(world.by_domain()[domain], _normal(place, alike, rng))
    judge = _judge(world, domain, truth, _normal(place, erring, rng))
    return Transcripts(
        np.char.add("d", domain.astype(str)), np.char.add("s", place.astype(str)), truth, judge
    )


def relabelled(world: World, items: Transcripts, rng: np.random.Generator) -> Codes:
    """The labels of another judge of the same transcripts, with errors of its own."""
    domain, place = (np.unique(names, return_inverse=True)[1] for names in (items.domain, items.scenario))
    return _judge(world, domain, items.truth, _normal(place, world.alike[1], rng))


def _judge(world: World, domain: Codes, truth: Codes, normal: Numbers) -> Codes:
    errors = np.broadcast_to(world.errors, (DOMAINS, *world.errors.shape[-2:]))
    return _labels(errors[domain, truth], normal)


def _normal(place: Codes, alike: float, rng: np.random.Generator) -> Numbers:
    """Standard normal numbers with this correlation within scenarios."""
    common = rng.normal(size=int(place.max()) + 1)[place]
    return np.asarray(np.sqrt(alike) * common + np.sqrt(1 - alike) * rng.normal(size=len(place)))


def _labels(shares: Numbers, normal: Numbers) -> Codes:
    """Labels with these probabilities, those of a row for each item."""
    with np.errstate(divide="ignore"):
        cuts = ndtri(np.minimum(1.0, np.cumsum(shares, axis=1)[:, :-1]))
    return np.asarray((normal[:, None] > cuts).sum(axis=1), dtype=np.int64)


def even_sizes(sizes: Sequence[int], total: int) -> list[int]:
    """How many to draw from strata of these sizes: as evenly as they allow."""
    drawn = [0] * len(sizes)
    for rank, stratum in enumerate(sorted(range(len(sizes)), key=lambda one: sizes[one])):
        drawn[stratum] = min(sizes[stratum], (total - sum(drawn)) // (len(sizes) - rank))
    return drawn


def strata_of(domain: Names, label: Codes, categories: int) -> Codes:
    """Codes of domain x label."""
    return np.asarray(np.unique(domain, return_inverse=True)[1] * categories + label)


def drawn(strata: Codes, total: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """An even sample of strata: which items people label."""
    chosen = np.zeros(len(strata), bool)
    order = rng.permutation(len(strata))
    for stratum, size in enumerate(even_sizes(np.bincount(strata).tolist(), total)):
        chosen[order[strata[order] == stratum][:size]] = True
    return chosen


def judged(world: World, rng: np.random.Generator, by: Codes | None = None) -> Judged:
    """Judged items, of which people label a sample that is even over judge's label x domain.

    Args:
        world: what is planted.
        rng: source of chance.
        by: another judge's labels of the same transcripts, by which the sample was drawn.
    """
    return sampled(world, transcripts(world, rng), rng, by)


def sampled(world: World, items: Transcripts, rng: np.random.Generator, by: Codes | None = None) -> Judged:
    """The same of these transcripts; people's labels are the truth."""
    categories = len(world.shares)
    strata = strata_of(items.domain, items.judge if by is None else by, categories)
    chosen = drawn(strata, world.gold, rng)
    person = np.where(chosen, items.truth, NOT_DRAWN)
    return Judged(items.domain, items.scenario, items.judge, person, strata, categories)


def refusing(world: World, refused: tuple[float, ...], rng: np.random.Generator) -> Judged:
    """Judged items of which the judge refuses this share of each true category; refusals are a stratum."""
    items = transcripts(world, rng)
    judge = np.where(rng.random(len(items.truth)) < np.array(refused)[items.truth], MISSING, items.judge)
    size = len(world.shares)
    strata = strata_of(items.domain, np.where(judge < 0, size, judge), size + 1)
    chosen = np.zeros(len(judge), bool)
    answered = np.flatnonzero(judge >= 0)
    chosen[answered] = drawn(strata[answered], world.gold, rng)
    person = np.where(chosen, items.truth, NOT_DRAWN)
    return Judged(items.domain, items.scenario, judge, person, strata, size)


def tendency(right: Sequence[float], towards: float) -> Numbers:
    """Errors of a judge that is right so often in each category and errs towards the first one so often."""
    size = len(right)
    found = np.diag(np.asarray(right, dtype=np.float64))
    for row, share in enumerate(right):
        others = [column for column in range(size) if column != row]
        weight = np.array([towards if column == 0 else (1 - towards) / (size - 2) for column in others])
        found[row, others] = (1 - share) * weight / weight.sum()
    return found


FOUR_LABELS: Final = World((0.45, 0.3, 0.15, 0.1), tendency((0.9, 0.8, 0.7, 0.6), 0.5))
SIX_LABELS: Final = World((0.4, 0.2, 0.15, 0.12, 0.08, 0.05), tendency((0.9, 0.8, 0.8, 0.7, 0.7, 0.6), 0.4))
