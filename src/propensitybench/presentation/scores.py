"""The scores of a run as its user gets them: printed, in a notebook, as a data frame, and in short."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from propensitybench.metrics import Interval, ScoredRun, TaskCounts
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.measures import Place, shown_in
from propensitybench.metrics.sequential import StoppingState
from propensitybench.presentation.tables import overview, score_rows
from propensitybench.presentation.words import own_of, remarks
from propensitybench.tabular import Brief, Tabular
from propensitybench.taxonomy import Naming


class RunScores(ScoredRun, Tabular, frozen=True):
    """The scores of one run; as a table, a row for each number that has an interval."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row for each estimate; see `presentation.tables.score_rows`."""
        return score_rows(self)

    def _repr_html_(self) -> str:
        return overview([self]).html() + "".join(f"<p>{escape(one)}</p>" for one in remarks([self]))

    def __repr__(self) -> str:
        return "\n".join([overview([self]).text(), *remarks([self])])


class Number(msgspec.Struct, frozen=True):
    """A value with its 95 % interval for new scenarios; None where the data cannot tell."""

    value: float | None
    ci95: Interval | None


class Summary(Brief, msgspec.Struct, frozen=True):
    """The numbers of a run to report, and what is needed to read them.

    Attributes:
        file: name of the run.
        model: model address.
        levels: number of pressure messages.
        arm: the variant that was played; only under ``escalating`` are the shares propensities.
        ladder: who wrote the messages and how time ran out; only ``paper`` is the published method.
        tasks: number of tasks by outcome.
        absent_domains: domains of the benchmark without a task in this run.
        numbers: by metric and naming.
        naming_sensitivity: propensity under benign minus under harmful names, on the same tasks; None with
            one naming.
        bounds: lowest and highest propensity of the tasks begun that those without a score allow.
        conduct: number of tasks by what the closing report shows, by naming; empty if none was asked for.
        stopping_rule: state of the stopping rule; None if the run has none.
        shard: which shard of the run was scored, for example ``3/64``; empty for a whole run.
        low_competence: why a low score of this agent says little; empty if it could use the tools.
        errors: why tasks errored: number of tasks by reason, of the most common reasons.
    """

    file: str
    model: str
    levels: int
    arm: str
    ladder: str
    tasks: TaskCounts
    absent_domains: list[str]
    numbers: dict[str, dict[Naming, Number]]
    naming_sensitivity: Number | None
    bounds: dict[Naming, Interval | None]
    conduct: dict[Naming, dict[str, int]]
    stopping_rule: StoppingState | None
    shard: str
    low_competence: str = ""
    errors: dict[str, int] = {}

    def to_dict(self) -> dict[str, Any]:
        """What ``score --json`` prints: each metric under its own name."""
        found = msgspec.to_builtins(self)
        return {**found.pop("numbers"), **found}


def summarise(run: ScoredRun, place: Place = "summary") -> Summary:
    """The numbers of a run to report, or those that are shown elsewhere."""
    absent = {name for scores in run.naming.values() for name in scores.absent_domains}
    contrast = run.naming_contrast
    return Summary(
        file=run.file,
        model=run.model,
        levels=run.levels,
        arm=run.arm,
        ladder=run.ladder,
        tasks=run.tasks,
        absent_domains=sorted(absent),
        numbers={
            measure.name: {
                naming: _number(scores.estimates[measure.name].domain)
                for naming, scores in run.naming.items()
            }
            for measure in (*shown_in(place), *(own_of([run]) if place == "summary" else ()))
        },
        naming_sensitivity=None if contrast is None else _number(contrast.propensity),
        bounds={naming: scores.bounds for naming, scores in run.naming.items()},
        conduct={naming: scores.conduct for naming, scores in run.naming.items()},
        stopping_rule=run.stopping_rule,
        shard=run.shard,
        low_competence=run.low_competence,
        errors=run.errors,
    )


def _number(estimate: Estimate) -> Number:
    return Number(estimate.value, estimate.ci95)
