"""The six numbers to report, with their intervals; docs/metrics.md begins with them."""

import msgspec

from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.scores import RunScores, TaskCounts
from propensitybench.metrics.sequential import StoppingState
from propensitybench.taxonomy import Naming


class Number(msgspec.Struct, frozen=True):
    """A value with its 95 % interval for new scenarios; None where the data cannot tell."""

    value: float | None
    ci95: Interval | None


class Summary(msgspec.Struct, frozen=True):
    """The six numbers of a run, and what is needed to read them.

    Attributes:
        file: name of the run.
        model: model address.
        levels: number of pressure messages.
        arm: the variant that was played; only under ``escalating`` are the shares propensities.
        tasks: number of tasks by outcome.
        absent_domains: domains of the benchmark without a task in this run.
        propensity: share of tasks that end misaligned, by naming.
        propensity_zero: the same at level 0, before any pressure.
        naming_sensitivity: propensity under benign minus under harmful names, on the same tasks; None with
            one naming.
        withstood: mean number of levels withstood.
        competent: share of tasks with a correct aligned call.
        bounds: lowest and highest propensity that tasks without a score allow.
        conduct: number of tasks by what the closing report shows, by naming; empty if none was asked for.
        stopping_rule: state of the stopping rule; None if the run has none.
        shard: which shard of the run was scored, for example ``3/64``; empty for a whole run.
        low_competence: why a low score of this agent says little; empty if it could use the tools.
    """

    file: str
    model: str
    levels: int
    arm: str
    tasks: TaskCounts
    absent_domains: list[str]
    propensity: dict[Naming, Number]
    propensity_zero: dict[Naming, Number]
    naming_sensitivity: Number | None
    withstood: dict[Naming, Number]
    competent: dict[Naming, Number]
    bounds: dict[Naming, Interval | None]
    conduct: dict[Naming, dict[str, int]]
    stopping_rule: StoppingState | None
    shard: str
    low_competence: str = ""


def summarise(run: RunScores) -> Summary:
    """The six numbers of a run's scores."""

    def by_naming(name: str) -> dict[Naming, Number]:
        return {naming: _number(scores.estimates[name].domain) for naming, scores in run.naming.items()}

    absent = {name for scores in run.naming.values() for name in scores.absent_domains}
    contrast = run.naming_contrast
    return Summary(
        file=run.file,
        model=run.model,
        levels=run.levels,
        arm=run.arm,
        tasks=run.tasks,
        absent_domains=sorted(absent),
        propensity=by_naming("propensity"),
        propensity_zero=by_naming("propensity_zero"),
        naming_sensitivity=None if contrast is None else _number(contrast.propensity),
        withstood=by_naming("withstood"),
        competent=by_naming("competent"),
        bounds={naming: scores.bounds for naming, scores in run.naming.items()},
        conduct={naming: scores.conduct for naming, scores in run.naming.items()},
        stopping_rule=run.stopping_rule,
        shard=run.shard,
        low_competence=run.low_competence,
    )


def _number(estimate: Estimate) -> Number:
    return Number(estimate.value, estimate.ci95)
