"""The hierarchical model for numpyro (extra ``bayes``): data, priors, draws, and integrals over the effects.

What it is for, and what is read from it: `hierarchical`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from propensitybench.errors import BadInput
from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.table import Table

# Groupings of scenarios with an effect of their own, where a table has the column.
GROUPINGS: Final = ("workspace", "storyline", "capability")
# The spread of fewer groups is mostly its prior.
MIN_GROUPS: Final = 5
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
WARM_UP: Final = 1000
# Shorter steps than by default, since a divergence ends the fit.
ACCEPTED: Final = 0.97
MAX_R_HAT: Final = 1.01
MIN_EFFECTIVE: Final = 400
NODES: Final = 25

# Is told how many draws are made, of how many.
OnDraw = Callable[[int, int], None]

# Draws of each parameter by its name, in rows. "sd NAME" is the spread of a grouping, or of scenarios.
Draws = Mapping[str, Numbers]


class Sampling(msgspec.Struct, frozen=True):
    """The checks of the draws.

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

    @property
    def passed(self) -> bool:
        """Whether the draws can be relied on, as in every fit."""
        return self.r_hat < MAX_R_HAT and self.effective_draws > MIN_EFFECTIVE and not self.divergences


@dataclass(frozen=True)
class Grouping:
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
    groupings: dict[str, Grouping]
    scenario: Codes
    dimension: Codes
    level: Codes
    at_risk: Numbers
    events: Numbers


def data_of(table: Table, groupings: Sequence[str] = GROUPINGS) -> HierarchicalData:
    """The counts of a table: of every level at which an episode was at risk, scored or not."""
    table = table.filter(table.at_risk[:, 0] > 0)
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


def _groupings(table: Table, columns: Sequence[str], first: Codes) -> dict[str, Grouping]:
    """The groupings with enough groups, with two scenarios in a group, and unlike each other."""
    found: dict[str, Grouping] = {}
    for column in columns:
        names, codes = np.unique(getattr(table, column)[first], return_inverse=True)
        if not names[0]:
            names, codes = names[1:], codes - 1
        enough = MIN_GROUPS <= len(names) < int((codes >= 0).sum())
        if enough and not any(_same(codes, other.codes) for other in found.values()):
            found[column] = Grouping(tuple(names.tolist()), codes)
    return found


def _same(one: Codes, other: Codes) -> bool:
    """Whether two groupings divide the scenarios alike, so that their effects cannot be separated."""
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(np.unique(one)) == len(np.unique(other))


def sample(
    data: HierarchicalData, seed: int, draws: int, *, chains: int = CHAINS, on_draw: OnDraw | None = None
) -> tuple[Draws, Sampling]:
    """Draws of the parameters by numpyro's NUTS, those of all chains in one row each, and their checks.

    Raises:
        BadInput: numpyro is not installed.
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
        made = NUTS if on_draw is None else _telling(NUTS, on_draw, WARM_UP + draws)
        kernel = made(model, target_accept_prob=ACCEPTED, dense_mass=[tuple(few)])
        mcmc = MCMC(
            kernel,
            num_warmup=WARM_UP,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
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
    return {name: values.reshape(-1, *values.shape[2:]) for name, values in by_chain.items()}, sampling


def _telling(kernel: Any, on_draw: OnDraw, total: int) -> Any:
    """A kernel that tells each draw; numpyro's own bars write to standard error and cannot be replaced."""
    import jax

    class Told(kernel):  # type: ignore[misc]
        def sample(self, state: Any, args: Any, kwargs: Any) -> Any:
            jax.debug.callback(lambda done: on_draw(int(np.max(done)), total), state.i)
            return super().sample(state, args, kwargs)

    return Told


def model(data: HierarchicalData) -> None:
    """The model as numpyro reads it."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    level = numpyro.sample(
        "level",
        dist.MultivariateNormal(
            jnp.full(data.levels, INTERCEPT), scale_tril=np.linalg.cholesky(level_covariance(data.levels))
        ),
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


def level_covariance(levels: int) -> Numbers:
    """Prior covariance of the levels: of a common intercept, and of each around it."""
    return np.asarray(INTERCEPT_SPREAD**2 + LEVEL_SPREAD**2 * np.eye(levels))


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
