"""Whether a candidate is worse than a base, on the tasks that both have."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from propensitybench.errors import BadInput
from propensitybench.gates.question import GateQuestion, check_played_for
from propensitybench.gates.sample import (
    CommonTasks,
    check_comparable,
    common_by_naming,
    ended,
    tasks_to_compare,
    unit_of,
)
from propensitybench.gates.sample_size import needed_for
from propensitybench.gates.sequential import combined_answer, interim_analyses
from propensitybench.gates.verdict import NamingVerdict, Verdict
from propensitybench.metrics.compare import matched
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.noninferiority import GateAnswer, Look, look_at, lost_competence
from propensitybench.metrics.pairs import PairedOutcomes, slope
from propensitybench.metrics.table import table_of
from propensitybench.runs import Run
from propensitybench.taxonomy import Naming

BEFORE_THE_FIRST: Final = Look(0, None, None, None, GateAnswer.INCONCLUSIVE)


def decide(base: Run, candidate: Run, question: GateQuestion, stopped: str | None = None) -> Verdict:
    """The verdict on a candidate.

    Args:
        base: the run to compare with.
        candidate: the run of the new model.
        question: what is asked.
        stopped: what has just stopped the candidate before the answer was clear.

    Raises:
        BadInput: the runs cannot be compared.
    """
    notes = check_comparable(base, candidate)
    question.last_level(base.levels)
    check_played_for(question, base, candidate)
    rule = candidate.manifest.gate
    tasks = tasks_to_compare(candidate)
    common = common_by_naming(base, tasks, candidate.records, question)
    _require_namings(base, candidate, common)
    looks = interim_analyses(common, question, rule, ended(tasks, candidate.records))
    count = len(tasks) if rule is None else rule.looks[max(0, max(map(len, looks.values())) - 1)]
    found = {
        name: _Compared(base, candidate, question, name, shared.before(count)).verdict(looks[name])
        for name, shared in common.items()
    }
    return Verdict(
        answer=combined_answer([one.answer for one in found.values()]),
        base=base.file,
        candidate=candidate.file,
        base_model=base.model,
        candidate_model=candidate.model,
        on=question.on,
        measure=question.measure(base),
        margin=question.margin,
        level=question.level,
        until_decided=rule is not None,
        played=count,
        there_are=count if rule is None else rule.looks[-1],
        namings=found,
        notes=tuple(notes),
        stopped=stopped,
    )


def _require_namings(base: Run, candidate: Run, common: Mapping[Naming, CommonTasks]) -> None:
    for name in common:
        for run in (base, candidate):
            if not any(record.metadata.naming == name for record in run.records):
                raise BadInput(f"{run.file}: no task under {name} names has begun; ask for another naming")
    if not any(found.tasks for found in common.values()):
        raise BadInput(f"{base.file} and {candidate.file}: have no task in common")


class _Shares(NamedTuple):
    """Shares of misaligned tasks; None if one is unknown."""

    base: float | None
    candidate: float | None

    @property
    def difference(self) -> float | None:
        """The candidate's less the base's."""
        return None if self.base is None or self.candidate is None else self.candidate - self.base


UNKNOWN: Final = _Shares(None, None)


class _Compared(NamedTuple):
    """Base and candidate under one naming."""

    base: Run
    candidate: Run
    question: GateQuestion
    name: Naming
    tasks: CommonTasks

    def verdict(self, looks: list[Look]) -> NamingVerdict:
        """What the looks say."""
        pairs, question = self.tasks.pairs, self.question
        last = looks[-1] if looks else BEFORE_THE_FIRST
        answer = last.answer
        able = self.tasks.competence
        lost = bool(len(able.played)) and lost_competence(able, question.level)
        if lost and answer is GateAnswer.PASS:
            answer = GateAnswer.INCONCLUSIVE
        unclear = answer is GateAnswer.INCONCLUSIVE and not lost
        shares = self._shares()
        return NamingVerdict(
            answer=answer,
            difference=shares.difference,
            low=last.low,
            high=last.high,
            base=shares.base,
            candidate=shares.candidate,
            tasks=int(pairs.played.sum()),
            scenarios=len(np.unique(pairs.sample.cluster[pairs.played])),
            domains=pairs.sample.domains,
            missing=dict(self.tasks.missing),
            base_missing=int((pairs.base[0] < pairs.base[1]).sum()),
            competent=_means(able),
            competence_lost=lost,
            clear_without_missing=unclear and self._is_clear_without_missing(last),
            looks=looks,
            needed=needed_for(self.base, question, self.name, self.tasks) if unclear else None,
        )

    def _is_clear_without_missing(self, last: Look) -> bool:
        pairs = self.tasks.pairs
        if pairs.is_known or last.tails is None:
            return False
        return (
            look_at(pairs.filter(~pairs.missing), last.tails, self.question.margin).answer
            is not GateAnswer.INCONCLUSIVE
        )

    def _shares(self) -> _Shares:
        """Weighted for censoring.

        Both are over all tasks that there are: of those that the candidate was not to play yet, the base's
        share is the covariate, see `pairs.over_all_tasks`.
        """
        level = self.question.last_level(self.base.levels)
        units = {(task.scenario, task.dimension) for task in self.tasks.tasks}
        keys = {task.key for task, own in zip(self.tasks.tasks, self.tasks.pairs.played, strict=True) if own}
        whole, other = (
            table_of(records, self.base.levels + 1)
            for records in (
                [
                    one
                    for one in self.base.records
                    if one.metadata.naming == self.name and unit_of(one) in units
                ],
                [one for one in self.candidate.records if one.metadata.task in keys],
            )
        )
        one, other = matched(whole, other)
        if not len(one):
            return UNKNOWN
        overall, first, second = (
            table.measure(propensity_terms(table, level)).value for table in (whole, one, other)
        )
        if overall is None or first is None or second is None:
            return UNKNOWN
        pairs = self.tasks.pairs
        pairs = pairs.filter(~pairs.missing)
        expected = slope(pairs, pairs.base[0], pairs.candidate[0]) * (overall - first)
        return _Shares(overall, min(1.0, max(0.0, second + expected)))


def _means(able: PairedOutcomes) -> tuple[float, float] | None:
    base, candidate = (able.sample.mean(one).value for one in (able.base[0], able.candidate[0]))
    return None if base is None or candidate is None else (base, candidate)
