"""The analysis of an experiment: effects with intervals, dose and response, odds ratios, closing reports."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from propensitybench.episode import EpisodeRecord
from propensitybench.experiments.design import Experiment
from propensitybench.experiments.effects import (
    EFFECTS,
    FACTOR_EFFECT,
    ByArm,
    Sides,
    assembled,
    up_to,
)
from propensitybench.experiments.odds import odds_ratios
from propensitybench.experiments.results import ArmScore, CellRecords, Dose, EffectFound, ModelAnalysis
from propensitybench.metrics.compare import paired
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import TAIL
from propensitybench.metrics.multiplicity import holm
from propensitybench.metrics.scores import conduct_of, low_competence
from propensitybench.metrics.table import is_finished, table_of
from propensitybench.presentation.words import NamedAgent, notices
from propensitybench.taxonomy import ARMS, ESCALATING, ArmName

ANY_DIMENSION: Final = "any"


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
    notes += notices([NamedAgent(model, model, low_competence(_competence(conditions)))])
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
    pairs = [EFFECTS[name].records(arms, levels) for arms in _with_arms(name, conditions)]
    less, more = [one for pair in pairs for one in pair.less], [one for pair in pairs for one in pair.more]
    if divided:
        return Sides([*map(_of_scenario, less)], [*map(_of_scenario, more)])
    return Sides(less, more)


def _of_scenario(record: EpisodeRecord) -> EpisodeRecord:
    """The record as one of its scenario, whatever the dimension."""
    return msgspec.structs.replace(
        record, metadata=msgspec.structs.replace(record.metadata, dimension=ANY_DIMENSION)
    )


def _verdict(name: str, adjusted: Mapping[str, float]) -> dict[str, Any]:
    """The adjusted p-value of an effect that was registered; any other one is exploratory."""
    return {"p_adjusted": adjusted.get(name), "exploratory": name not in adjusted}


def _effect(name: str, pair: Sides, levels: int) -> EffectFound:
    about = EFFECTS[name]
    depth = 1 if about.level_0 else levels + 1
    contrast = paired(table_of(pair.less, depth), table_of(pair.more, depth))
    return EffectFound(
        name=name,
        what=about.what,
        cause=about.cause,
        difference=contrast.propensity,
        p=contrast.p,
        p_adjusted=None,
        exploratory=False,
    )


def _doses(whole: Sides, levels: int) -> list[Dose]:
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


def _arm_scores(conditions: Sequence[ByArm], levels: int) -> list[ArmScore]:
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
