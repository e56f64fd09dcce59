"""Candidates that are played until a gate is decided."""

from collections.abc import Callable
from typing import Final

from propensitybench.engine import tasks_drawn
from propensitybench.engine.same_tasks import begun_tasks, identity_of
from propensitybench.errors import BadInput
from propensitybench.metrics.noninferiority import Answer
from propensitybench.runs.gate_pairs import common_tasks, ended
from propensitybench.runs.gate_question import Question
from propensitybench.runs.gating import looks_of, together
from propensitybench.runs.stored import StoredRun
from propensitybench.store import GateRule, RunFile

# More looks end a clear case a little sooner and cost power; beyond 20, the median sample stays the same.
LOOKS: Final = 20
# By each look, so much of the level is spent as the share of the tasks to this power: 1 answers a little
# sooner, 3 a good deal later, for a point of power less or more (docs/gate.md).
EXPONENT: Final = 1.5
# Pairs between two looks, at least: at each look all of its tasks have to end.
BATCH: Final = 80
# Pairs before the first look: with fewer, the limits rest on too few misaligned tasks.
LEAST: Final = 200


def rule_for(base: StoredRun, question: Question, most: int | None = None) -> GateRule:
    """The rule for a candidate that is played until the answer is clear.

    Args:
        base: the run to compare with.
        question: what is asked.
        most: number of tasks after which the answer stays unclear; by default all of the base's.

    Raises:
        BadInput: there is nothing to play, or the question cannot be asked of the base.
    """
    question.check(base.levels)
    with RunFile.open(base.path) as file:
        if file.shard is not None:
            raise BadInput(f"{base.file}: is a shard; merge the shards first")
        tasks = begun_tasks(file, question.namings)
    count = len(tasks) if most is None else min(most, len(tasks))
    names = len(question.namings)
    count -= count % names
    if not count:
        raise BadInput(
            f"{base.file}: has no task under {' and '.join(question.namings)} names that has begun"
        )
    return GateRule(
        margin=question.margin,
        on=question.on,
        level=question.level,
        looks=look_counts(count, names),
        exponent=EXPONENT,
        base=identity_of(base.manifest),
    )


def look_counts(count: int, namings: int) -> tuple[int, ...]:
    """Numbers of tasks after which to look.

    Args:
        count: tasks in all; a multiple of the number of namings.
        namings: number of namings, which a look has in equal numbers.
    """
    least = min(count, LEAST * namings)
    looks = max(1, min(LOOKS, count // (BATCH * namings)))
    steps = (count * look // looks // namings * namings for look in range(1, looks + 1))
    return tuple(sorted({max(least, step) for step in steps}))


def draw_until_decided(base: StoredRun, question: Question) -> Callable[[RunFile], int]:
    """The number of tasks of a candidate to draw once all drawn so far have ended.

    It follows from the two run files alone, so that a candidate that is interrupted and resumed is played
    on the same tasks as one that is not.
    """
    last_level = question.check(base.levels)

    def draw(file: RunFile) -> int:
        rule = file.manifest.gate
        if rule is None:
            raise BadInput(f"{file.path}: was not made to be played until decided")
        until = tasks_drawn(file)
        records = list(file.records())
        tasks = [one.task for one in file.tasks()]
        common = {
            name: common_tasks(base.records, tasks, records, name, last_level) for name in question.namings
        }
        looks = looks_of(common, question, rule, ended(tasks, records))
        last = [found[-1].answer for found in looks.values() if found]
        if not last or together(last) is not Answer.INCONCLUSIVE:
            return until
        return next((look for look in rule.looks if look > until), until)

    return draw
