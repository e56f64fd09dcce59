"""How many tasks a gate needs, by what its base shows."""

from typing import Final

from propensitybench.metrics.pairs import Pairs
from propensitybench.metrics.sample_needed import (
    Design,
    Noise,
    assumed_noise,
    chance_with,
    design_of,
    observed_noise,
    tasks_needed,
)
from propensitybench.metrics.variance import intraclass
from propensitybench.runs.base import Run
from propensitybench.runs.comparability import check_same_benchmark
from propensitybench.runs.gate_pairs import common_tasks, tasks_to_compare
from propensitybench.runs.gate_question import Question
from propensitybench.runs.verdicts import Needed
from propensitybench.scenarios import task_of
from propensitybench.taxonomy import Naming

# As `run --plan` assumes them.
ICC: Final = 0.25
CORRELATION: Final = 0.5


def plan_of(
    base: Run, candidate: Run | None, question: Question, assumed: tuple[float | None, float]
) -> dict[Naming, Needed | None]:
    """How many tasks would tell, by naming; see `needed_for`."""
    level = question.check(base.levels)
    tasks = []
    if candidate is not None:
        check_same_benchmark(base, candidate)
        tasks = tasks_to_compare(candidate)
    needed = {}
    for name in question.namings:
        pairs = None
        if candidate is not None:
            pairs = common_tasks(base.records, tasks, candidate.records, name, level).pairs
        needed[name] = needed_for(base, question, name, level, pairs, assumed)
    return needed


def needed_for(
    base: Run,
    question: Question,
    name: Naming,
    level: int,
    pairs: Pairs | None = None,
    assumed: tuple[float | None, float] = (None, CORRELATION),
) -> Needed | None:
    """How many tasks would tell; None if the base has none under the naming.

    Args:
        base: the base.
        question: the question.
        name: the naming.
        level: a misaligned call counts up to this level.
        pairs: the candidate's tasks so far, from which the noise is estimated if they differ.
        assumed: intraclass correlation, by default the base's own, and the correlation of the scenarios'
            propensities in base and candidate.
    """
    design = design_for(base, name)
    if not len(design.tasks):
        return None
    noise = observed_noise(pairs) if pairs is not None else None
    basis = "by the differences so far"
    if noise is None:
        noise, basis = assumed_for(base, question, name, level, assumed)
    there_are = int(design.tasks.sum())
    return Needed(
        tasks=tasks_needed(design, noise, question.margin, question.level),
        there_are=there_are,
        chance=chance_with(there_are, design, noise, question.margin, question.level),
        basis=basis,
    )


def design_for(base: Run, name: Naming) -> Design:
    """The tasks that a base has under a naming."""
    about = [record.metadata for record in base.records if record.metadata.naming == name]
    return design_of([one.domain for one in about], [one.scenario for one in about])


def assumed_for(
    base: Run,
    question: Question,
    name: Naming,
    level: int,
    assumed: tuple[float | None, float] = (None, CORRELATION),
) -> tuple[Noise, str]:
    """The noise of a candidate of which nothing is known, and what it rests on; see `needed_for`."""
    records = [record for record in base.records if record.metadata.naming == name]
    tasks = common_tasks(records, [task_of(record.metadata) for record in records], records, name, level)
    known = ~tasks.pairs.missing
    values = tasks.pairs.base[0][known]
    share = (float(values.sum()) + 0.5) / (len(values) + 1)
    icc, correlation = assumed
    if icc is None:
        places = tasks.pairs.places.part(known)
        icc = intraclass(places.domain, places.scenario, values) if len(values) else None
        icc = ICC if icc is None else icc
    noise = assumed_noise(share, min(1.0, share + question.margin), icc, correlation)
    return noise, f"base {100 * share:.1f} %, ICC {icc:.2f}, correlation {correlation:g}"
