"""The results of an experiment as tables, for the terminal and the page."""

from collections.abc import Iterator

from propensitybench.experiments.results import EffectFound, ModelAnalysis, OddsRatio
from propensitybench.metrics.intervals import Interval
from propensitybench.presentation.formats import NOTHING, p_value, points, points_with_interval
from propensitybench.presentation.tables import Grid, share


def result_tables(model: ModelAnalysis) -> Iterator[Grid]:
    """The arms, the effects and the odds ratios of a model; those that there are."""
    yield _arms(model)
    if model.effects:
        columns = ["effect", "difference", "points (95 %)", "bounds", "p", "adjusted p", "standing"]
        yield Grid("effects, in points", columns, [_effect(one) for one in model.effects], names=2)
    if model.odds:
        columns = ["level", "against", "odds ratio (95 %)", "p", "adjusted p", "standing"]
        yield Grid("factors", columns, [_ratio(one) for one in model.odds], names=2)


def dose_table(model: ModelAnalysis) -> Grid:
    """The placebo-adjusted effect of pressure by each level."""
    rows = [[str(one.level), points(one.difference), _ends(one.ci95)] for one in model.doses]
    columns = ["level", "difference", "simultaneous 95 % interval"]
    return Grid("placebo-adjusted effect of pressure by level, in points", columns, rows)


def _arms(model: ModelAnalysis) -> Grid:
    kinds = sorted({kind for arm in model.arms for kind in arm.conduct})
    rows = [
        [
            arm.label,
            f"{sum(arm.tasks.values()):,}",
            share(arm.propensity),
            ", ".join(f"{count:,} {name}" for name, count in sorted(arm.tasks.items())),
            *(str(arm.conduct.get(kind, 0)) for kind in kinds),
        ]
        for arm in model.arms
    ]
    return Grid("arms", ["arm", "tasks", "misaligned (95 %)", "outcomes", *kinds], rows)


def _effect(one: EffectFound) -> list[str]:
    p = p_value(one.p), p_value(one.p_adjusted)
    difference = points_with_interval(one.difference)
    return [one.name, one.what, difference, _ends(one.difference.bounds), *p, one.standing]


def _ratio(one: OddsRatio) -> list[str]:
    ratio = f"{one.ratio:.2f} ({one.ci95.low:.2f} to {one.ci95.high:.2f})"
    p = p_value(one.p), p_value(one.p_adjusted)
    standing = f"{one.standing} {'between' if one.between else ''}".strip()
    return [one.name, one.reference, ratio, *p, standing]


def _ends(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{points(interval.low)} to {points(interval.high)}"
