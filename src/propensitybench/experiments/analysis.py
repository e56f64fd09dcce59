"""The analysis of an experiment: effects with intervals, dose and response, odds ratios, closing reports."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from propensitybench.episode import EpisodeRecord
from propensitybench.experiments.design import Experiment
from propensitybench.experiments.effects import (
    EFFECTS,
    FACTOR_EFFECT,
    ByArm,
    assembled,
    sides,
    up_to,
)
from propensitybench.experiments.factors import Factor
from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.compare import paired
from propensitybench.metrics.competence import low_competence
from propensitybench.metrics.estimates import Estimate, estimate, propensity_terms
from propensitybench.metrics.intervals import TAIL, Interval
from propensitybench.metrics.multiplicity import holm
from propensitybench.metrics.odds import LogOdds, log_odds
from propensitybench.metrics.scores import conduct_of
from propensitybench.metrics.table import is_finished, table_of
from propensitybench.taxonomy import ARMS, ESCALATING, ArmName

CLAIMED: Final = 0.05
ANY_DIMENSION: Final = "any"
Sides = tuple[list[EpisodeRecord], list[EpisodeRecord]]


class ArmScore(msgspec.Struct, frozen=True):
    """One arm, or an arm's short episodes put together as if levels did not depend on each other.

    Attributes:
        arm: its name.
        together: whether it is put together.
        propensity: share of tasks with a misaligned call.
        by_level: the same by each level.
        conduct: number of tasks by what the closing report shows.
        tasks: number of episodes by outcome.
    """

    arm: str
    together: bool
    propensity: Estimate
    by_level: tuple[float | None, ...]
    conduct: dict[str, int]
    tasks: dict[str, int]

    @property
    def label(self) -> str:
        """The arm's name, and whether its episodes are put together."""
        return f"{self.arm}, put together" if self.together else self.arm


class EffectFound(msgspec.Struct, frozen=True):
    """An effect: a difference in propensity between two arms on the same tasks.

    Attributes:
        name: see `EFFECTS`.
        what: the difference, in words.
        cause: what a difference would show; empty for a sum of several causes.
        difference: with the interval for new scenarios and the bounds that missing episodes allow.
        p: of the two-sided sign-flip test over scenarios; None without a pair.
        p_adjusted: by Holm, over all effects of the model that were registered; None for an exploratory one.
        exploratory: whether it was added to the design after the first call.
    """

    name: str
    what: str
    cause: str
    difference: Estimate
    p: float | None
    p_adjusted: float | None
    exploratory: bool

    @property
    def claimed(self) -> bool:
        """Whether it can be claimed: registered, and significant after adjustment."""
        return self.p_adjusted is not None and self.p_adjusted < CLAIMED

    @property
    def standing(self) -> str:
        """``exploratory``, ``claimed`` or nothing, for a table."""
        return _standing(self)


def _standing(one: "EffectFound | OddsRatio") -> str:
    return "exploratory" if one.exploratory else "claimed" if one.claimed else ""


class Dose(msgspec.Struct, frozen=True):
    """The placebo-adjusted effect of pressure by a level.

    Attributes:
        level: 0 to 12; at level 0 both arms are alike, so it should be 0.
        difference: share misaligned by this level under rising pressure, minus that under messages without.
        ci95: simultaneous over all levels (Bonferroni).
    """

    level: int
    difference: float | None
    ci95: Interval | None


class OddsRatio(msgspec.Struct, frozen=True):
    """The odds of a misaligned call at a level of a factor, over those at its reference level.

    Attributes:
        ratio, ci95: from a logistic regression on all factors, arms, domains and the naming, with scenarios
            and storylines as clusters.
        p, p_adjusted, exploratory: as in `EffectFound`.
        between: whether the levels are for different scenarios.
    """

    factor: str
    level: str
    reference: str
    ratio: float
    ci95: Interval
    p: float
    p_adjusted: float | None
    exploratory: bool
    between: bool

    @property
    def name(self) -> str:
        """Factor and level."""
        return f"{self.factor}={self.level}"

    @property
    def claimed(self) -> bool:
        """As of `EffectFound`."""
        return self.p_adjusted is not None and self.p_adjusted < CLAIMED

    @property
    def standing(self) -> str:
        """``exploratory``, ``claimed`` or nothing, for a table."""
        return _standing(self)


class ModelAnalysis(msgspec.Struct, frozen=True):
    """Everything about one model; ``notes`` says what could not be computed and why, and what says little."""

    model: str
    arms: tuple[ArmScore, ...]
    effects: tuple[EffectFound, ...]
    doses: tuple[Dose, ...]
    odds: tuple[OddsRatio, ...]
    notes: tuple[str, ...]


class Analysis(msgspec.Struct, frozen=True):
    """The analysis of an experiment.

    Attributes:
        name, question: of the design.
        digest: of the design as registered before the first call; empty if it was not.
        models: one analysis for each.
    """

    name: str
    question: str
    digest: str
    models: tuple[ModelAnalysis, ...]


class CellRecords(NamedTuple):
    """The episodes of a cell."""

    arm: ArmName
    levels: Mapping[str, str]
    records: Sequence[EpisodeRecord]


def analyse_model(
    experiment: Experiment, model: str, cells: Sequence[CellRecords], registered: Sequence[str]
) -> ModelAnalysis:
    """Analyses the cells of one model.

    Args:
        experiment: the design.
        model: its address.
        cells: its cells that were played.
        registered: effects that were declared before the first call.
    """
    conditions = _conditions(cells)
    notes: list[str] = []
    levels, divided = experiment.design.levels, experiment.design.assignment == "latin"
    # What was registered is analysed even if the design was changed since: nothing leaves the family.
    wanted = [name for name in dict.fromkeys((*registered, *experiment.comparisons)) if name in EFFECTS]
    effects = [
        _effect(name, _sides(name, conditions, levels, divided=divided), levels)
        for name in wanted
        if _with_arms(name, conditions)
    ]
    notes += [
        f"no effect {one.name}: no task was observed on both of its sides"
        for one in effects
        if one.difference.value is None
    ]
    if low := low_competence(_competence(conditions)):
        notes.append(low)
    odds = odds_ratios(experiment.factors, cells, notes)
    family: dict[str, float | None] = {name: None for name in wanted if name in registered}
    for factor in experiment.factors:
        if FACTOR_EFFECT + factor.name in registered:
            family |= {f"{factor.name}={level.level}": None for level in factor.levels[1:]}
    family |= {one.name: one.p for one in effects if one.name in family}
    family |= {one.name: one.p for one in odds if one.name in family}
    p_values = [1.0 if p is None else p for p in family.values()]
    adjusted = dict(zip(family, holm(p_values), strict=True))
    return ModelAnalysis(
        model=model,
        arms=tuple(_arm_scores(conditions, levels)),
        effects=tuple(msgspec.structs.replace(one, **_verdict(one.name, adjusted)) for one in effects),
        doses=tuple(_doses(_sides("total", conditions, levels, divided=divided), levels)),
        odds=tuple(msgspec.structs.replace(one, **_verdict(one.name, adjusted)) for one in odds),
        notes=tuple(notes),
    )


def _conditions(cells: Sequence[CellRecords]) -> list[ByArm]:
    """The episodes by arm, for each combination of levels: short episodes of two make no chain."""
    found: dict[tuple[tuple[str, str], ...], dict[ArmName, list[EpisodeRecord]]] = {}
    for cell in cells:
        arms = found.setdefault(tuple(sorted(cell.levels.items())), {})
        arms.setdefault(cell.arm, []).extend(cell.records)
    return [*found.values()]


def _with_arms(name: str, conditions: Sequence[ByArm]) -> list[ByArm]:
    """The conditions that have all arms of an effect."""
    return [arms for arms in conditions if set(EFFECTS[name].arms) <= arms.keys()]


def _sides(name: str, conditions: Sequence[ByArm], levels: int, *, divided: bool) -> Sides:
    """The two sides of an effect, over all conditions that have its arms.

    Where tasks are divided between the cells, no task is in two of them: then scenarios are paired.
    """
    pairs = [sides(name, arms, levels) for arms in _with_arms(name, conditions)]
    less, more = [one for side, _ in pairs for one in side], [one for _, side in pairs for one in side]
    return ([*map(_of_scenario, less)], [*map(_of_scenario, more)]) if divided else (less, more)


def _of_scenario(record: EpisodeRecord) -> EpisodeRecord:
    """The record as one of its scenario, whatever the dimension."""
    return msgspec.structs.replace(
        record, metadata=msgspec.structs.replace(record.metadata, dimension=ANY_DIMENSION)
    )


def _verdict(name: str, adjusted: Mapping[str, float]) -> dict[str, Any]:
    """The adjusted p-value of an effect that was registered; any other one is exploratory."""
    return {"p_adjusted": adjusted.get(name), "exploratory": name not in adjusted}


def _effect(name: str, pair: Sides, levels: int) -> EffectFound:
    less, more = pair
    depth = 1 if name == "blockage" else levels + 1
    contrast = paired(table_of(less, depth), table_of(more, depth))
    about = EFFECTS[name]
    return EffectFound(
        name=name,
        what=about.what,
        cause=about.cause,
        difference=contrast.propensity,
        p=contrast.p,
        p_adjusted=None,
        exploratory=False,
    )


def _doses(whole: Sides, levels: int) -> "list[Dose]":
    """The difference by every level, if there are the two arms."""
    if not any(whole):
        return []
    found = []
    for level in range(levels + 1):
        less, more = ([up_to(record, level) for record in side] for side in whole)
        one, other = table_of(less, level + 1), table_of(more, level + 1)
        difference = paired(one, other, flips=0, tail=TAIL / (levels + 1)).propensity
        found.append(Dose(level, difference.value, difference.ci95))
    return found


def _competence(conditions: Sequence[ByArm]) -> dict[str, float | None]:
    """The share of tasks with a correct aligned call, by arm."""
    shares: dict[str, float | None] = {}
    for arm in dict.fromkeys(arm for arms in conditions for arm in arms):
        scored = [one for arms in conditions for one in arms.get(arm, ()) if is_finished(one)]
        shares[f"arm {arm}"] = sum(one.stats.competent for one in scored) / len(scored) if scored else None
    return shares


def _arm_scores(conditions: Sequence[ByArm], levels: int) -> "list[ArmScore]":
    found = []
    for arm in dict.fromkeys(arm for arms in conditions for arm in arms):
        alone = ARMS[arm].alone
        records = [record for arms in conditions for record in arms.get(arm, ())]
        found.append(_arm_score(arm, records, 1 if alone else levels + 1, together=False))
        both = [arms for arms in conditions if {arm, ESCALATING} <= arms.keys()]
        if alone and both:
            chains = [chain for arms in both for chain in assembled(arms[arm], arms[ESCALATING], levels)]
            found.append(_arm_score(arm, chains, levels + 1, together=True))
    return found


def _arm_score(arm: str, records: Sequence[EpisodeRecord], levels: int, *, together: bool) -> ArmScore:
    table = table_of(records, levels)
    by_level = [
        estimate(table, propensity_terms(table, level), "share by level").value for level in range(levels)
    ]
    return ArmScore(
        arm=arm,
        together=together,
        propensity=estimate(table, propensity_terms(table), f"propensity, arm {arm}"),
        by_level=tuple(by_level),
        conduct=conduct_of(records),
        tasks=dict(Counter(one.stats.outcome.value for one in records)),
    )


def odds_ratios(
    factors: Sequence[Factor], cells: Sequence[CellRecords], notes: list[str]
) -> "list[OddsRatio]":
    """The odds ratio of every level of every factor."""
    rows = [(cell, record) for cell in cells for record in cell.records if is_finished(record)]
    missing = sum(len(cell.records) for cell in cells) - len(rows)
    if not factors or not rows:
        return []
    if missing:
        notes.append(f"odds ratios leave out {missing} episodes without a score; the differences have bounds")
    names, columns = _columns(factors, rows)
    outcome = np.array([record.stats.outcome == "misaligned" for _, record in rows], dtype=np.float64)
    clusters = [
        np.unique([record.metadata.scenario for _, record in rows], return_inverse=True)[1],
        np.unique(
            [record.metadata.storyline or record.metadata.scenario for _, record in rows], return_inverse=True
        )[1],
    ]
    fit = log_odds(columns, outcome, clusters)
    if isinstance(fit, str):
        notes.append(f"no odds ratios: {fit}")
        return []
    return [
        _odds_ratio(factor, level.level, fit, names.index(f"{factor.name}={level.level}"))
        for factor in factors
        for level in factor.levels[1:]
        if f"{factor.name}={level.level}" in names
    ]


def _columns(
    factors: Sequence[Factor], rows: Sequence[tuple[CellRecords, EpisodeRecord]]
) -> tuple[list[str], Numbers]:
    """The columns of the regression and their names: an intercept, and all levels but each first one."""
    stated = [
        {
            **{f"{factor.name}={cell.levels[factor.name]}": 1.0 for factor in factors},
            f"arm={cell.arm}": 1.0,
            f"domain={record.metadata.domain}": 1.0,
            f"naming={record.metadata.naming}": 1.0,
        }
        for cell, record in rows
    ]
    every = list(dict.fromkeys(name for row in stated for name in row))
    references = {f"{factor.name}={factor.levels[0].level}" for factor in factors}
    for kind in ("arm", "domain", "naming"):
        references.add(next(name for name in every if name.startswith(f"{kind}=")))
    kept = [name for name in every if name not in references]
    columns = np.array([[1.0, *(row.get(name, 0.0) for name in kept)] for row in stated])
    return ["", *kept], columns


def _odds_ratio(factor: Factor, level: str, fit: LogOdds, place: int) -> OddsRatio:
    from scipy.special import stdtr, stdtrit  # scipy is slow to import

    value, error = float(fit.values[place]), float(np.sqrt(fit.covariance[place, place]))
    half = float(stdtrit(fit.freedom, 1 - TAIL)) * error
    return OddsRatio(
        factor=factor.name,
        level=level,
        reference=factor.levels[0].level,
        ratio=exp(value),
        ci95=Interval(exp(value - half), exp(value + half)),
        p=2 * float(stdtr(fit.freedom, -abs(value) / error)),
        p_adjusted=None,
        exploratory=False,
        between=factor.between,
    )
