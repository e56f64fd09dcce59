"""How many tasks a gate needs, by what its base shows."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.episode import EpisodeRecord
from propensitybench.gates.question import GateQuestion
from propensitybench.gates.sample import (
    CommonTasks,
    common_tasks,
)
from propensitybench.metrics.noninferiority import MIN_SCENARIOS
from propensitybench.metrics.power import CORRELATION, ICC
from propensitybench.metrics.sample_needed import (
    AvailableTasks,
    Noise,
    assumed_noise,
    chance_with,
    design_of,
    observed_noise,
    tasks_needed,
)
from propensitybench.metrics.variance import intraclass
from propensitybench.runs import Run
from propensitybench.scenarios import task_of
from propensitybench.tabular import Tabular
from propensitybench.taxonomy import Naming

# A base that is so many times as large is all that is thought of.
MAX_TIMES: Final = 100


class Needed(msgspec.Struct, frozen=True):
    """How many tasks would tell.

    Attributes:
        tasks: tasks of the candidate under one naming for a chance of 90 % of a pass at no change, and of a
            fail at a change of the margin; None if no number of epochs of the base's tasks is enough.
        there_are: tasks that the base has.
        scenarios: scenarios that it has.
        chance: that chance with all of these.
        basis: what the number rests on.
        larger_base: tasks of a base that would be enough, played once, if its further scenarios are like
            those that it has; None if ``tasks`` is known, or if `MAX_TIMES` as many are too few.
    """

    tasks: int | None
    there_are: int
    scenarios: int
    chance: float
    basis: str
    larger_base: int | None = None

    def sentence(self, margin: float) -> str:
        """How many tasks are enough for a margin, and what that rests on."""
        if self.scenarios < MIN_SCENARIOS:
            return too_few(self.scenarios)
        if self.tasks is None:
            small = (
                f"The base is too small for a margin of {100 * margin:g} points, however often its "
                f"{self.there_are:,} tasks are repeated ({self.basis})"
            )
            if self.larger_base is None:
                return f"{small}: widen --margin."
            return (
                f"{small}: play a base with about --limit {self.larger_base} and the candidate likewise, "
                "or widen --margin."
            )
        enough = f"About {self.tasks:,} tasks would decide with a probability of 90 % ({self.basis})"
        if self.tasks <= self.there_are:
            return f"{enough}."
        return (
            f"{enough}; the base has {self.there_are:,}, which give {100 * self.chance:.0f} %: play both "
            "runs with a larger --limit or more --epochs, or widen --margin."
        )


def too_few(scenarios: int) -> str:
    """What to do if there are no limits, with so many scenarios in both runs."""
    return (
        f"Too few scenarios: {scenarios}, and no answer rests on fewer than {MIN_SCENARIOS}, two in each "
        f"domain; play both runs with one --seed and --limit {max(MIN_SCENARIOS, scenarios + 1)} or more."
    )


class _Basis(NamedTuple):
    """The noise of a candidate, and what it rests on."""

    noise: Noise
    words: str


class GatePlan(Tabular, msgspec.Struct, frozen=True):
    """How many tasks it takes to tell; as a table, one row for each naming.

    Attributes:
        margin: the increase that is too much.
        on: the share that is compared.
        level: error rate of each answer.
        measure: what the share is called.
        needed: tasks by naming; None if the base has none under it.
    """

    margin: float
    on: str
    level: float
    measure: str
    needed: dict[Naming, Needed | None]

    def rows(self) -> Sequence[dict[str, Any]]:
        """One for each naming that the base has."""
        return [
            {"naming": naming, **msgspec.structs.asdict(found)}
            for naming, found in self.needed.items()
            if found is not None
        ]

    def __repr__(self) -> str:
        about = f"margin {100 * self.margin:g} points"
        return "\n".join(
            f"{self.measure} under {naming} names, {about}: "
            + (f"the base has no task under {naming} names" if found is None else found.sentence(self.margin))
            for naming, found in self.needed.items()
        )


def needed_for(
    base: Run, question: GateQuestion, name: Naming, tasks: CommonTasks | None = None
) -> Needed | None:
    """How many tasks would tell; None if the base has none under the naming.

    Args:
        base: the base.
        question: the question.
        name: the naming.
        tasks: the candidate's tasks so far, from which the noise is estimated if they differ.
    """
    records = [record for record in base.records if record.metadata.naming == name]
    if not records:
        return None
    design = design_of([one.metadata.domain for one in records], [one.metadata.scenario for one in records])
    observed = None if tasks is None else observed_noise(tasks.pairs)
    if observed is None:
        noise, basis = _assumed(records, question, name, question.last_level(base.levels))
    else:
        noise, basis = observed, "estimated from the differences so far"
    enough, larger = tasks_needed(design, noise, question.margin, question.level), None
    if enough is None:
        more = AvailableTasks(MAX_TIMES * design.scenarios, MAX_TIMES * design.tasks)
        larger = tasks_needed(more, noise, question.margin, question.level)
    return Needed(
        tasks=enough,
        there_are=len(records),
        scenarios=len({one.metadata.scenario for one in records}),
        chance=chance_with(len(records), design, noise, question.margin, question.level),
        basis=basis,
        larger_base=larger if larger is None or larger <= MAX_TIMES * len(records) else None,
    )


def _assumed(records: Sequence[EpisodeRecord], question: GateQuestion, name: Naming, level: int) -> _Basis:
    """For a candidate of which nothing is known."""
    pairs = common_tasks(
        records, [task_of(record.metadata) for record in records], records, name, level
    ).pairs
    known = ~pairs.missing
    values = pairs.base[0][known]
    share = (float(values.sum()) + 0.5) / (len(values) + 1)
    icc = intraclass(pairs.sample.domain[known], pairs.sample.cluster[known], values)
    icc = ICC if icc is None else icc
    noise = assumed_noise(share, min(1.0, share + question.margin), icc, CORRELATION)
    return _Basis(noise, f"base {100 * share:.1f} %, ICC {icc:.2f}, correlation {CORRELATION:g}")
