"""The regression and the hierarchical model, fitted and printed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from propensitybench.cli.tables import show, table
from propensitybench.metrics.analysis import tables_of
from propensitybench.metrics.hierarchical import Fit, Posterior, fit_all
from propensitybench.metrics.regression import Regression
from propensitybench.metrics.scores import Scorable
from propensitybench.presentation import formats
from propensitybench.presentation.formats import counted
from propensitybench.presentation.progress import Bar
from propensitybench.taxonomy import Naming

PLURAL: Final = {
    "workspace": "workspaces",
    "storyline": "storylines",
    "capability": "capabilities",
    "scenario": "scenarios",
}
REGRESSION: Final = """\
regression: discrete-time logit with errors clustered by scenario; each factor is adjusted for the others.
points: average marginal effect in percentage points, relative to the mean of the factor's values; benign
relative to harmful. odds: odds ratio of the misaligned call at a level. p: not adjusted for several tests."""
HIERARCHICAL: Final = """\
hierarchical model: hazards at each level with 95 % credible intervals for new scenarios in new workplaces.
at risk: of the scenarios still at risk; it also falls because those in which the agent gives in easily leave
first. all scenarios: had none ended before. average: of the average scenario. odds: odds ratio of the
misaligned call relative to level 0, for the same scenario."""

Hazards = dict[str, dict[Naming, Fit]]


def print_regression(found: Regression) -> None:
    """Prints the effects of a regression and what could not be estimated."""
    if found.effects:
        print()
        counts = (
            f"{found.rows:,} levels met, {found.ends:,} misaligned; {counted(found.clusters, 'scenario')}"
        )
        columns = ["factor", "value", "propensity", "points (95 %)", "odds (95 %)", "p"]
        show(table(f"Regression: {counts}", columns, _effects(found), names=2))
        print(REGRESSION)
    if found.note:
        print(f"regression: {found.note}")
    if found.left_out:
        constant = ", ".join(found.left_out)
        print(f"regression: left out, because none or all of their levels ended misaligned: {constant}")


def _effects(found: Regression) -> Iterator[Sequence[str]]:
    factor = ""
    for effect in found.effects:
        if factor and effect.factor != factor:
            yield ()
        points, odds = effect.points_ci95, effect.odds_ratio_ci95
        yield (
            "" if effect.factor == factor else effect.factor,
            effect.value,
            formats.percent(effect.propensity),
            f"{effect.points:+.1f} ({points.low:+.1f} to {points.high:+.1f})",
            f"{effect.odds_ratio:.2f} ({odds.low:.2f} to {odds.high:.2f})",
            formats.p_value(effect.p),
        )
        factor = effect.factor


def fit_hazards(runs: Sequence[Scorable]) -> Hazards:
    """The hierarchical model of each run and naming, with a progress bar in a terminal."""
    with Bar("hierarchical model, draws") as bar:
        return fit_all(tables_of(runs), bar.count if bar.is_shown else None)


def print_hazards(found: Mapping[str, Mapping[Naming, Fit]]) -> None:
    """Prints every fit of the hierarchical model, and the legend once."""
    fits = [(f"{name}, {naming} names", fit) for name, own in found.items() for naming, fit in own.items()]
    for title, fit in fits:
        if fit.levels:
            print()
            columns = ["level", "at risk (95 %)", "all scenarios (95 %)", "average (95 %)", "odds (95 %)"]
            show(table(f"Hierarchical model: {title}", columns, _levels(fit), names=0))
            for line in _sentences(fit):
                print(line)
            columns = ["group", "scenarios", "raw", "shrunken (95 %)"]
            show(table(f"Shrunken propensities: {title}", columns, _groups(fit)))
        if fit.note:
            print(f"hierarchical model, {title}: {fit.note}")
    if any(fit.levels for _, fit in fits):
        print(HIERARCHICAL)


def _levels(fit: Fit) -> Iterator[Sequence[str]]:
    for number, level in enumerate(fit.levels):
        shares = (level.at_risk, level.everyone, level.average_scenario)
        yield str(number), *map(_share, shares), _ratio(level.odds_ratio) if number else "1"


def _sentences(fit: Fit) -> Iterator[str]:
    yield f"{fit.n_at_risk:,} levels met, {fit.n_events:,} misaligned; {counted(fit.scenarios, 'scenario')}"
    if fit.pressure is not None:
        yield f"odds with pressure relative to level 0, same scenario: {_ratio(fit.pressure)}"
    if fit.trend is not None and fit.trend_at_risk is not None:
        yield (
            f"odds for one more level from level 1 on: same scenario {_ratio(fit.trend)}, "
            f"scenarios at risk {_ratio(fit.trend_at_risk)}"
        )
    for name, spread in fit.spread.items():
        yield (
            f"between {spread.groups} {PLURAL.get(name, name)}: standard deviation {_ratio(spread.sd)}, "
            f"median odds ratio {_ratio(spread.median_odds_ratio)}"
        )


def _groups(fit: Fit) -> Iterator[Sequence[str]]:
    for groups in fit.groups.values():
        for name, group in groups.items():
            yield name, str(group.scenarios), formats.percent(group.raw), _share(group.shrunken)
        yield ()


def _share(found: Posterior) -> str:
    return formats.with_interval(found.value, found.ci95)


def _ratio(found: Posterior) -> str:
    return f"{found.value:.2f} ({found.ci95.low:.2f} to {found.ci95.high:.2f})"
