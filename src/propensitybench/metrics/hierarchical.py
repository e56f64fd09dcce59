"""A hierarchical model of the hazard: who gives in, and what the pressure adds for the same scenario.

    logit P(misaligned at this level) = level + domain + dimension (from level 1)
                                        + scenario + workspace + capability

with normal effects of scenarios and of the groups to which they belong. The hazard of the episodes at risk
falls with the level when scenarios in which the agent gives in easily leave first; the model's hazard of a
given scenario does not. Priors, formulas and limits: docs/metrics.md, "Hierarchical model". Draws come from
numpyro (extra ``bayes``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Final

import msgspec
import numpy as np

from propensitybench.errors import BadInput, NotConverged
from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.table import Table
from propensitybench.taxonomy import Naming

# Groupings of scenarios with an effect of their own, where a table has the column.
GROUPINGS: Final = ("workspace", "storyline", "capability")
# The spread of fewer groups is mostly its prior.
MIN_GROUPS: Final = 5
MIN_SCENARIOS: Final = 10
# Priors on the logit scale: mean and standard deviation of the intercept; standard deviations of levels
# around it, of domains and of dimensions; half-normal scales of the spreads of scenarios and of groups.
# Levels with independent intercepts would together say a lot about their mean, and in a small run force the
# hazards towards it.
INTERCEPT: Final = -3.0
INTERCEPT_SPREAD: Final = 2.0
LEVEL_SPREAD: Final = 1.5
EFFECT_SPREAD: Final = 0.5
SCENARIO_SCALE: Final = 1.5
GROUP_SCALE: Final = 1.0
CHAINS: Final = 4
DRAWS: Final = 1000
# Shorter steps than by default, since a divergence ends the fit.
ACCEPTED: Final = 0.9
MAX_R_HAT: Final = 1.01
MIN_EFFECTIVE: Final = 400
# With scales this much larger, importance weights leave enough draws of most full runs.
WIDER: Final = 1.5
MIN_WEIGHTED: Final = 100
# Draws behind the integrals: the rest would change the third digit of an interval.
INTEGRATED: Final = 1000
NODES: Final = 25
# Variance of the logistic distribution: of a single call, given its hazard.
LOGISTIC: Final = pi**2 / 3
# Third quartile of the standard normal distribution.
QUARTILE: Final = 0.6744897501960817

Draws = Mapping[str, Numbers]


class Posterior(msgspec.Struct, frozen=True):
    """A quantity of the model.

    Attributes:
        value: posterior median.
        ci95: 95 % credible interval, equal-tailed.
    """

    value: float
    ci95: Interval


class LevelHazard(msgspec.Struct, frozen=True):
    """Hazards at one level (0..1), with equal weights of domains and dimensions.

    Attributes:
        at_risk: of the scenarios still at risk, the model's counterpart of ``survival.hazard``.
        everyone: of all scenarios, had none ended before. ``at_risk`` is lower by selection.
        average_scenario: of a scenario with average effects.
        odds_ratio: of the misaligned call relative to level 0, for the same scenario and the average
            dimension.
    """

    at_risk: Posterior
    everyone: Posterior
    average_scenario: Posterior
    odds_ratio: Posterior


class GroupSpread(msgspec.Struct, frozen=True):
    """How much groups or scenarios differ.

    Attributes:
        groups: number of groups or scenarios.
        sd: standard deviation of their effects on the logit scale.
        share: share of the variance of a single call on the latent logistic scale.
        median_odds_ratio: median, over random pairs, of the larger odds relative to the smaller (Larsen and
            Merlo 2005).
    """

    groups: int
    sd: Posterior
    share: Posterior
    median_odds_ratio: Posterior


class GroupPropensity(msgspec.Struct, frozen=True):
    """The propensity of a capability or workspace.

    Attributes:
        raw: share of its scored tasks; None without one.
        scenarios: number of scenarios.
        shrunken: propensity of its new scenarios according to the model.
    """

    raw: float | None
    scenarios: int
    shrunken: Posterior


class PriorSensitivity(msgspec.Struct, frozen=True):
    """The main results with the scales of all priors times 1.5, by importance weights.

    Attributes:
        pressure, trend: as in the fit.
        sd: by grouping.
        effective_draws: draws that the weights leave. With fewer than 100 there are no results: the data say
            so little that the priors matter.
    """

    pressure: Posterior | None
    trend: Posterior | None
    sd: dict[str, Posterior]
    effective_draws: float


class Sampling(msgspec.Struct, frozen=True):
    """The checks of the draws, which every fit has passed.

    Attributes:
        chains, draws: number of chains, and of draws over all of them.
        r_hat: largest split R-hat over all parameters but scenarios; below 1.01 if the chains agree.
        effective_draws: smallest effective sample size; more than 400.
        divergences: number of failed integrations; none.
    """

    chains: int
    draws: int
    r_hat: float
    effective_draws: float
    divergences: int


class Fit(msgspec.Struct, frozen=True):
    """The hierarchical model of one model under one naming.

    Attributes:
        levels: by level.
        pressure: odds ratio of the misaligned call with pressure relative to level 0, for the same scenario:
            geometric mean over the levels from 1; None without such a level.
        trend: odds ratio for one more level, from level 1 on, for the same scenario; above 1 if later
            pressure is stronger. None with fewer than two such levels.
        trend_at_risk: the same in the hazards ``at_risk``. It is lower by selection.
        propensity: of new scenarios in new workplaces, domains weighted equally.
        spread: by grouping, with ``scenario``.
        groups: propensity of each group, by grouping.
        sampling: checks of the sampler.
        wider_priors: sensitivity to the priors.
        n_at_risk, n_events: number of levels at risk, and of misaligned calls.
        scenarios: number of scenarios.
        note: why there is no fit; empty if there is one.
    """

    levels: tuple[LevelHazard, ...]
    pressure: Posterior | None
    trend: Posterior | None
    trend_at_risk: Posterior | None
    propensity: Posterior | None
    spread: dict[str, GroupSpread]
    groups: dict[str, dict[str, GroupPropensity]]
    sampling: Sampling | None
    wider_priors: PriorSensitivity | None
    n_at_risk: int
    n_events: int
    scenarios: int
    note: str


@dataclass(frozen=True)
class _Grouping:
    """Groups of scenarios: their names, and the index of each scenario's group, -1 without one."""

    names: tuple[str, ...]
    codes: Codes


@dataclass(frozen=True)
class HierarchicalData:
    """Counts of one model under one naming, which are sufficient.

    A row is a scenario at level 0, or at a later level under one dimension: at level 0, before any pressure,
    the dimensions of a scenario are the same conversation, and have the index 0.

    Attributes:
        levels, domains, dimensions: how many of each; of levels, those at which anybody was at risk.
        domain: index of each scenario's domain.
        groupings: by column, those that the data can support.
        scenario, dimension, level: indices of each row.
        at_risk: number of episodes at risk, by row.
        events: number of those that ended misaligned, by row.
    """

    levels: int
    domains: int
    dimensions: int
    domain: Codes
    groupings: dict[str, _Grouping]
    scenario: Codes
    dimension: Codes
    level: Codes
    at_risk: Numbers
    events: Numbers


def fit(
    table: Table,
    *,
    groupings: Sequence[str] = GROUPINGS,
    seed: int = 0,
    draws: int = DRAWS,
    progress: bool = False,
) -> Fit:
    """Fits the hierarchical model to one model under one naming.

    Every level at which an episode was at risk counts, whether or not the episode has a score.

    Args:
        table: the episodes.
        groupings: columns of the table by which scenarios are grouped. One with fewer than five groups, or as
            many as scenarios, is left out, and so is one that equals another.
        seed: of the sampler; equal seeds give equal results.
        draws: of each of four chains, after as many for its adaptation.
        progress: shows numpyro's progress bars on standard error.

    Raises:
        BadInput: numpyro is not installed.
        NotConverged: the draws do not pass the checks, so no number of them may be used.
    """
    epochs = (table.finished + table.missing)[:, None]
    at_risk, events = (round(float((share * epochs).sum())) for share in (table.at_risk, table.ends))
    scenarios = len(np.unique(table.scenario[table.at_risk[:, 0] > 0]))
    note = ""
    if scenarios < MIN_SCENARIOS:
        note = f"{scenarios} scenarios are too few; at least {MIN_SCENARIOS} are needed"
    elif not 0 < events < at_risk:
        note = "nothing varies: all tasks end alike at each level"
    if note:
        return Fit((), None, None, None, None, {}, {}, None, None, at_risk, events, scenarios, note)
    data = data_of(table, groupings)
    found, sampling = sample(data, seed, draws, progress=progress)
    some = thinned(found, INTEGRATED)
    at_risk_hazard, everyone, propensity = hazards(some)
    pressure, trend = _pressure(found["level"]), _slope(found["level"])
    return Fit(
        levels=_levels(found["level"], at_risk_hazard, everyone),
        pressure=_odds_ratio(pressure),
        trend=_odds_ratio(trend),
        trend_at_risk=_odds_ratio(_slope(_logit(at_risk_hazard))),
        propensity=_posterior(propensity),
        spread=_spreads(found, data),
        groups=_groups(some, data, table),
        sampling=sampling,
        wider_priors=_wider(found, pressure, trend),
        n_at_risk=at_risk,
        n_events=events,
        scenarios=scenarios,
        note="",
    )


def fit_all(
    tables: Mapping[tuple[str, Naming], Table], *, progress: bool = False
) -> dict[str, dict[Naming, Fit]]:
    """Fits every run and naming, by the run's name and the naming; raises as `fit` does."""
    found: dict[str, dict[Naming, Fit]] = {}
    for (name, naming), table in tables.items():
        try:
            found.setdefault(name, {})[naming] = fit(table, progress=progress)
        except NotConverged as error:
            raise NotConverged(f"{name}, {naming} names: {error}") from error
    return found


def data_of(table: Table, groupings: Sequence[str] = GROUPINGS) -> HierarchicalData:
    """The counts of a table: of every level at which an episode was at risk, scored or not."""
    table = table.where(table.at_risk[:, 0] > 0)
    epochs = (table.finished + table.missing)[:, None]
    levels = int(np.flatnonzero(table.at_risk.sum(axis=0)).max()) + 1
    _, first, scenario = np.unique(table.scenario, return_index=True, return_inverse=True)
    dimensions, dimension = np.unique(table.dimension, return_inverse=True)
    domains, domain = np.unique(table.domain[first], return_inverse=True)

    def counts(shares: Numbers) -> Numbers:
        found = np.zeros((len(first), len(dimensions), levels))
        np.add.at(found, (scenario, dimension), (shares * epochs)[:, :levels])
        found[:, 0, 0] = found[:, :, 0].sum(axis=1)
        found[:, 1:, 0] = 0
        return found

    at_risk = counts(table.at_risk)
    rows = np.nonzero(at_risk)
    return HierarchicalData(
        levels=levels,
        domains=len(domains),
        dimensions=len(dimensions),
        domain=domain,
        groupings=_groupings(table, groupings, first),
        scenario=rows[0],
        dimension=rows[1],
        level=rows[2],
        at_risk=at_risk[rows],
        events=counts(table.ends)[rows],
    )


def _groupings(table: Table, columns: Sequence[str], first: Codes) -> dict[str, _Grouping]:
    """The groupings with enough groups, with two scenarios in a group, and unlike each other."""
    found: dict[str, _Grouping] = {}
    for column in columns:
        names, codes = np.unique(getattr(table, column)[first], return_inverse=True)
        if not names[0]:
            names, codes = names[1:], codes - 1
        enough = MIN_GROUPS <= len(names) < int((codes >= 0).sum())
        if enough and not any(_same(codes, other.codes) for other in found.values()):
            found[column] = _Grouping(tuple(names.tolist()), codes)
    return found


def _same(one: Codes, other: Codes) -> bool:
    """Whether two groupings divide the scenarios alike, so that their effects cannot be separated."""
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(np.unique(one)) == len(np.unique(other))


def sample(
    data: HierarchicalData, seed: int, draws: int, *, chains: int = CHAINS, progress: bool = False
) -> tuple[Draws, Sampling]:
    """Draws of the parameters by numpyro's NUTS, those of all chains in one row each, and their checks.

    Raises:
        BadInput: numpyro is not installed.
        NotConverged: the draws do not pass the checks.
    """
    try:
        import jax
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
        from numpyro.infer import MCMC, NUTS
    except ImportError as error:
        raise BadInput(
            "the hierarchical model needs numpyro; type: pip install 'propensitybench[bayes]'"
        ) from error
    # Only here and in this thread, so that nothing changes for a host process that uses jax.
    with jax.enable_x64(True):
        few = ["level", *(f"sd {name}" for name in (*data.groupings, "scenario"))]
        kernel = NUTS(_model, target_accept_prob=ACCEPTED, dense_mass=[tuple(few)])
        mcmc = MCMC(
            kernel,
            num_warmup=draws,
            num_samples=draws,
            num_chains=chains,
            chain_method="sequential",
            progress_bar=progress,
        )
        mcmc.run(jax.random.key(seed), data, extra_fields=("diverging",))
        divergences = int(mcmc.get_extra_fields()["diverging"].sum())
        by_chain = {
            name: np.asarray(values, dtype=np.float64)
            for name, values in mcmc.get_samples(group_by_chain=True).items()
            if not name.startswith("standard ")
        }
    # An effect of a single domain or dimension is 0 in every draw.
    checked = [values for values in by_chain.values() if values.std() > 0]
    sampling = Sampling(
        chains=chains,
        draws=chains * draws,
        r_hat=max(float(split_gelman_rubin(values).max()) for values in checked),
        effective_draws=min(float(effective_sample_size(values).min()) for values in checked),
        divergences=divergences,
    )
    if not (sampling.r_hat < MAX_R_HAT and sampling.effective_draws > MIN_EFFECTIVE and not divergences):
        raise NotConverged(
            f"the hierarchical model did not converge (R-hat {sampling.r_hat:.3f}, "
            f"{sampling.effective_draws:.0f} effective draws, {sampling.divergences} divergences), so it has "
            "no numbers; play more tasks, or do without it"
        )
    return {name: values.reshape(-1, *values.shape[2:]) for name, values in by_chain.items()}, sampling


def _model(data: HierarchicalData) -> None:
    """The model as numpyro reads it."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    level = numpyro.sample(
        "level", dist.MultivariateNormal(jnp.full(data.levels, INTERCEPT), _level_covariance(data.levels))
    )

    def zero_sum(name: str, count: int) -> Any:
        if count == 1:
            return numpyro.deterministic(name, jnp.zeros(1))
        return numpyro.sample(name, dist.ZeroSumNormal(EFFECT_SPREAD, event_shape=(count,)))

    def effects(name: str, count: int, scale: float) -> Any:
        spread = numpyro.sample(f"sd {name}", dist.HalfNormal(scale))
        standard = numpyro.sample(f"standard {name}", dist.Normal(0, 1).expand([count]).to_event(1))
        return spread * standard

    scenario = zero_sum("domain", data.domains)[data.domain]
    dimension = zero_sum("dimension", data.dimensions)
    for name, grouping in data.groupings.items():
        own = numpyro.deterministic(name, effects(name, len(grouping.names), GROUP_SCALE))
        scenario += jnp.where(grouping.codes >= 0, own[grouping.codes], 0)
    scenario += effects("scenario", len(data.domain), SCENARIO_SCALE)
    pressure = jnp.where(data.level > 0, dimension[data.dimension], 0)
    logits = scenario[data.scenario] + level[data.level] + pressure
    numpyro.sample("events", dist.Binomial(data.at_risk, logits=logits), obs=data.events)


def _level_covariance(levels: int) -> Numbers:
    """Prior covariance of the levels: of a common intercept, and of each around it."""
    return np.asarray(INTERCEPT_SPREAD**2 + LEVEL_SPREAD**2 * np.eye(levels))


def thinned(draws: Draws, count: int) -> Draws:
    """At most this many of the draws, evenly spaced."""
    whole = len(draws["level"])
    rows = np.linspace(0, whole - 1, min(whole, count)).astype(np.int64)
    return {name: values[rows] for name, values in draws.items()}


def hazards(draws: Draws) -> tuple[Numbers, Numbers, Numbers]:
    """Hazards by level of those at risk and of everyone, shape (draws, levels), and the propensity, by draw.

    All are means over domains, and integrals over the effects of scenarios and groups.
    """
    variance = sum(values**2 for name, values in draws.items() if name.startswith("sd "))
    parts = [_integrals(draws, shift, np.sqrt(variance)) for shift in draws["domain"].T]
    everyone, survive = (np.stack(part) for part in zip(*parts, strict=True))
    entered = np.concatenate([np.ones_like(survive[..., :1]), survive[..., :-1]], axis=-1)
    # A domain in which everybody has ended has no hazard left; it counts as 1, its limit.
    at_risk = 1 - np.divide(survive, entered, out=np.zeros_like(survive), where=entered > 0)
    return at_risk.mean(axis=0), everyone.mean(axis=0), 1 - survive[..., -1].mean(axis=0)


def group_propensities(draws: Draws, data: HierarchicalData, column: str) -> Numbers:
    """Propensity of new scenarios in each group of a grouping, shape (draws, groups).

    A group in several domains has the mean over its scenarios' domains.
    """
    others = [name for name in draws if name.startswith("sd ") and name != f"sd {column}"]
    spread = np.sqrt(sum(draws[name] ** 2 for name in others))
    found = np.zeros_like(draws[column])
    for group in range(found.shape[1]):
        domains, counts = np.unique(data.domain[data.groupings[column].codes == group], return_counts=True)
        for domain, count in zip(domains, counts, strict=True):
            shift = draws[column][:, group] + draws["domain"][:, domain]
            _, survive = _integrals(draws, shift, spread)
            found[:, group] += (1 - survive[:, -1]) * count / counts.sum()
    return found


def _integrals(draws: Draws, shift: Numbers, spread: Numbers) -> tuple[Numbers, Numbers]:
    """Mean hazard of all scenarios and share without a misaligned call so far, by draw and level.

    Over a normal effect of this spread by Gauss-Hermite quadrature, and over dimensions.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum() / draws["dimension"].shape[1]
    pressed = np.arange(draws["level"].shape[1]) > 0
    # Axes: draw, dimension, node, level.
    logits = draws["level"][:, None, None, :] + draws["dimension"][:, :, None, None] * pressed
    logits = logits + (shift[:, None] + spread[:, None] * nodes)[:, None, :, None]
    hazard = 1 / (1 + np.exp(-np.maximum(logits, -300.0)))
    survive = np.cumprod(1 - hazard, axis=-1)
    mean, left = (np.einsum("adnl,n->al", values, weights) for values in (hazard, survive))
    return mean, left


def _levels(level: Numbers, at_risk: Numbers, everyone: Numbers) -> tuple[LevelHazard, ...]:
    return tuple(
        LevelHazard(
            at_risk=_posterior(at_risk[:, place]),
            everyone=_posterior(everyone[:, place]),
            average_scenario=_posterior(1 / (1 + np.exp(-level[:, place]))),
            odds_ratio=_posterior(np.exp(level[:, place] - level[:, 0])),
        )
        for place in range(level.shape[1])
    )


def _pressure(logits: Numbers) -> Numbers | None:
    return logits[:, 1:].mean(axis=1) - logits[:, 0] if logits.shape[1] > 1 else None


def _slope(logits: Numbers) -> Numbers | None:
    """Slope over the levels from 1 by least squares."""
    levels = np.arange(1, logits.shape[1])
    if len(levels) < 2:
        return None
    centred = levels - levels.mean()
    return np.asarray(logits[:, 1:] @ centred / (centred**2).sum())


def _spreads(draws: Draws, data: HierarchicalData) -> dict[str, GroupSpread]:
    counts = {name: len(grouping.names) for name, grouping in data.groupings.items()}
    counts["scenario"] = len(data.domain)
    whole = sum(draws[f"sd {name}"] ** 2 for name in counts) + LOGISTIC
    return {
        name: GroupSpread(
            groups=count,
            sd=_posterior(draws[f"sd {name}"]),
            share=_posterior(draws[f"sd {name}"] ** 2 / whole),
            median_odds_ratio=_posterior(np.exp(sqrt(2) * QUARTILE * draws[f"sd {name}"])),
        )
        for name, count in counts.items()
    }


def _groups(draws: Draws, data: HierarchicalData, table: Table) -> dict[str, dict[str, GroupPropensity]]:
    found: dict[str, dict[str, GroupPropensity]] = {}
    for column, grouping in data.groupings.items():
        values, names = group_propensities(draws, data, column), getattr(table, column)
        found[column] = {
            name: GroupPropensity(
                raw=_raw(table.where(names == name)),
                scenarios=int((grouping.codes == group).sum()),
                shrunken=_posterior(values[:, group]),
            )
            for group, name in enumerate(grouping.names)
        }
    return found


def _raw(table: Table) -> float | None:
    scored = table.done()
    whole = float(scored.weight.sum())
    return float((scored.weight * scored.misaligned).sum()) / whole if whole > 0 else None


def _wider(draws: Draws, pressure: Numbers | None, trend: Numbers | None) -> PriorSensitivity:
    """The main results under wider priors (importance weights, Kallioinen et al. 2024)."""
    level = draws["level"] - INTERCEPT
    squares = (level * np.linalg.solve(_level_covariance(level.shape[1]), level.T).T).sum(axis=1)
    for name in ("domain", "dimension"):
        squares += (draws[name] ** 2).sum(axis=1) / EFFECT_SPREAD**2
    spreads = {name.removeprefix("sd "): values for name, values in draws.items() if name.startswith("sd ")}
    for name, values in spreads.items():
        squares += (values / (SCENARIO_SCALE if name == "scenario" else GROUP_SCALE)) ** 2
    # Ratio of normal densities of scale WIDER and of scale 1, up to a constant.
    logs = squares * (1 - WIDER**-2) / 2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    effective = 1 / float((weights**2).sum())
    if effective < MIN_WEIGHTED:
        return PriorSensitivity(None, None, {}, effective)
    sd = {name: _posterior(values, weights) for name, values in spreads.items()}
    return PriorSensitivity(_odds_ratio(pressure, weights), _odds_ratio(trend, weights), sd, effective)


def _odds_ratio(logs: Numbers | None, weights: Numbers | None = None) -> Posterior | None:
    return None if logs is None else _posterior(np.exp(logs), weights)


def _posterior(values: Numbers, weights: Numbers | None = None) -> Posterior:
    if weights is None:
        low, middle, high = np.quantile(values, [0.025, 0.5, 0.975]).tolist()
    else:
        order = np.argsort(values)
        below = np.cumsum(weights[order]) - weights[order] / 2
        low, middle, high = np.interp([0.025, 0.5, 0.975], below, values[order]).tolist()
    return Posterior(middle, Interval(low, high))


def _logit(shares: Numbers) -> Numbers:
    inside = np.clip(shares, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inside / (1 - inside)))
