"""How often the numbers of a judge's labels are right, where the truth is planted: docs/judging-numbers.md.

Every column is a share of 0 to 1; NaN stands for a run without the number.
"""

from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Final

import numpy as np

from propensitybench.metrics.agreement import alpha_interval, pairs
from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.corrected import (
    Corrected,
    LabelShare,
    matrix_shares,
    misses,
    rogan_gladen_shares,
    uncorrected_shares,
)
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.judge_error import accuracy
from propensitybench.metrics.judged import Judged, Resamples
from propensitybench.metrics.ppi import ppi_shares
from validation.cells import Cell, Result, Sheet
from validation.judged_worlds import (
    DOMAINS,
    FOUR_LABELS,
    SIX_LABELS,
    World,
    binary,
    errors_of,
    judged,
    refusing,
    relabelled,
    sampled,
    transcripts,
)

DRAWS: Final = 1000
YES: Final = 1
SENSITIVITIES: Final = (0.6, 0.8, 0.95)
SPECIFICITIES: Final = (0.7, 0.85, 0.95)
PREVALENCES: Final = (0.05, 0.2, 0.4, 0.6)


def holds(interval: Interval | None, truth: float) -> float:
    """1 if the interval holds the number, 0 if not, NaN without one."""
    return nan if interval is None else float(interval.low <= truth <= interval.high)


def in_domains(found: Corrected, shares: Sequence[float]) -> float:
    """The share of domains whose interval holds the share there."""
    parts = zip(found.by_domain.values(), shares, strict=True)
    return float(np.mean([holds(part.ci95, share) for part, share in parts]))


def one_judge(world: World, rng: np.random.Generator) -> Result:
    """A judge of two categories, and people who label a sample drawn by its labels."""
    sample = judged(world, rng)
    resamples = Resamples(sample, rng, DRAWS)
    gladen, ppi = rogan_gladen_shares(resamples)[YES], ppi_shares(resamples)[YES]
    raw, rates = uncorrected_shares(sample)[YES].share, accuracy(resamples)[YES]
    truth, parts = world.shares[YES], world.by_domain()[:, YES].tolist()
    missed = misses(raw, ppi.share)
    found = float(np.array(world.shares) @ world.errors[:, YES])
    return {
        "bias, points": found - truth,
        "Rogan-Gladen": holds(gladen.share.ci95, truth),
        "PPI++": holds(ppi.share.ci95, truth),
        "Rogan-Gladen, a domain": in_domains(gladen, parts),
        "PPI++, a domain": in_domains(ppi, parts),
        "sensitivity": holds(rates.sensitivity.ci95, float(world.errors[1, 1])),
        "specificity": holds(rates.specificity.ci95, float(world.errors[0, 0])),
        "uncorrected": holds(raw.ci95, truth),
        "misses corrected": nan if missed is None else float(missed),
        "bias shown": 1 - holds(ppi.bias.ci95, 0.0),
    }


def other_judge(world: World, other: World, rng: np.random.Generator) -> Result:
    """The same judge, where the sample for people was drawn by the labels of another one."""
    items = transcripts(world, rng)
    return binary_columns(world, sampled(world, items, rng, relabelled(other, items, rng)), rng)


def usual(world: World, rng: np.random.Generator) -> Result:
    """The sample drawn by the judge's own labels."""
    return binary_columns(world, judged(world, rng), rng)


def refusals(world: World, rng: np.random.Generator) -> Result:
    """A judge that refuses 15 % of the items of the category and 5 % of the others."""
    return binary_columns(world, refusing(world, (0.05, 0.15), rng), rng)


def binary_columns(world: World, sample: Judged, rng: np.random.Generator) -> Result:
    """Coverage of the corrections."""
    resamples = Resamples(sample, rng, DRAWS)
    truth, parts = world.shares[YES], world.by_domain()[:, YES].tolist()
    gladen, ppi, plain = (
        found[YES]
        for found in (rogan_gladen_shares(resamples), ppi_shares(resamples), ppi_shares(resamples, 1.0))
    )
    return {
        "Rogan-Gladen": holds(gladen.share.ci95, truth),
        "PPI++": holds(ppi.share.ci95, truth),
        "PPI of power 1": holds(plain.share.ci95, truth),
        "Rogan-Gladen, a domain": in_domains(gladen, parts),
        "PPI++, a domain": in_domains(ppi, parts),
        "with bounds": holds(ppi.share.ci95_bounds, truth),
        "width, Rogan-Gladen": width(gladen.share),
        "width, PPI++": width(ppi.share),
        "width, power 1": width(plain.share),
    }


def width(share: LabelShare) -> float:
    """Of the interval."""
    return nan if share.ci95 is None else share.ci95.high - share.ci95.low


def categories(world: World, rng: np.random.Generator) -> Result:
    """A judge of several categories: coverage, mean over them and of the worst of them by the table."""
    resamples = Resamples(judged(world, rng), rng, DRAWS)
    matrix, ppi = matrix_shares(resamples), ppi_shares(resamples)
    columns = {}
    for name, found in ("matrix", matrix), ("PPI++", ppi):
        for one, share in zip(found, world.shares, strict=True):
            columns[f"{name} {share:g}"] = holds(one.share.ci95, share)
        parts = world.by_domain().T.tolist()
        columns[f"{name}, a domain"] = float(
            np.mean([in_domains(one, shares) for one, shares in zip(found, parts, strict=True)])
        )
    return columns


def agreeing(world: World, raters: int, items: int, rng: np.random.Generator) -> Result:
    """Raters with the same errors who label a random sample."""
    found = transcripts(world, rng)
    labels = np.stack([relabelled(world, found, rng) for _ in range(raters)])
    chosen = rng.permutation(labels.shape[1])[:items]
    ratings = labels[:, chosen].astype(np.float64).tolist()
    scenarios = found.scenario[chosen]
    joint = np.einsum("d,dt,dti,dtj->ij", np.full(DOMAINS, 1 / DOMAINS), world.by_domain(), *errors(world))
    marginal = joint.sum(axis=0)
    true = (np.trace(joint) - marginal @ marginal) / (1 - marginal @ marginal)
    alpha = alpha_interval(ratings, scenarios, rng, draws=DRAWS)
    pair = pairs(ratings[:2], scenarios, rng, DRAWS)[0]
    return {
        "alpha": holds(alpha.ci95, true),
        "kappa": holds(pair.kappa_ci95, true),
        "agreement": holds(pair.agreement_ci95, float(np.trace(joint))),
    }


def errors(world: World) -> tuple[Numbers, Numbers]:
    """The errors by domain, for each of two raters."""
    found = np.broadcast_to(world.errors, (DOMAINS, *world.errors.shape[-2:]))
    return found, found


GRID: Final = Sheet(
    "Judges",
    ("prevalence", "sensitivity", "specificity"),
    [
        Cell((f"{prevalence:g}", f"{sensitivity:g}", f"{specificity:g}"), partial(one_judge, world))
        for prevalence in PREVALENCES
        for sensitivity in SENSITIVITIES
        for specificity in SPECIFICITIES
        for world in [binary(prevalence, sensitivity, specificity)]
    ],
    shares=True,
)
BASE: Final = binary(0.2, 0.8, 0.85)
DRIFT: Final = np.array([errors_of(0.6 + 0.1 * domain, 0.95 - 0.05 * domain) for domain in range(DOMAINS)])
ALIKE: Final = (0.6, 0.5)
HALF: Final = 0.5
SETTINGS: Final = Sheet(
    "Settings",
    ("setting",),
    [
        Cell((name,), play, HALF)
        for name, play in {
            "people label 200": partial(usual, BASE),
            "people label 100": partial(usual, BASE._replace(gold=100)),
            "people label 400": partial(usual, BASE._replace(gold=400)),
            "tasks of a scenario more alike": partial(usual, BASE._replace(alike=ALIKE)),
            "60 scenarios": partial(usual, BASE._replace(scenarios=60)),
            "24 scenarios, more alike, 100": partial(
                usual, BASE._replace(scenarios=24, alike=ALIKE, gold=100)
            ),
            "errors differ by domain": partial(usual, BASE._replace(errors=DRIFT)),
            "drawn by another judge (.7, .8)": partial(other_judge, BASE, binary(0.2, 0.7, 0.8)),
            "drawn by another judge (.95, .95)": partial(other_judge, BASE, binary(0.2, 0.95, 0.95)),
            "refuses 5 %, of the category 15 %": partial(refusals, BASE),
        }.items()
    ],
    shares=True,
)
CATEGORIES: Final = tuple(
    Sheet(
        f"{len(world.shares)} categories",
        ("items labelled by people",),
        [Cell((f"{gold}",), partial(categories, world._replace(gold=gold)), HALF) for gold in (200, 400)],
        shares=True,
    )
    for world in (FOUR_LABELS, SIX_LABELS)
)
AGREEMENT: Final = Sheet(
    "Agreement",
    ("categories", "raters", "items"),
    [
        Cell((str(len(world.shares)), str(raters), str(items)), partial(agreeing, world, raters, items))
        for world in (BASE, FOUR_LABELS)
        for raters in (2, 3)
        for items in (50, 200)
    ],
    shares=True,
)
SHEETS: Final = (GRID, SETTINGS, *CATEGORIES, AGREEMENT)
