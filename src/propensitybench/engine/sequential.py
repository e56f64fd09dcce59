"""Batches of a run with a stopping rule.

The state is computed from the run file alone, and the rule is applied only when every task drawn so far has
ended. So a run that is interrupted and resumed draws the same tasks as one that is not.
"""

from propensitybench.metrics.sequential import StoppingState, half_width, is_narrow
from propensitybench.metrics.table import table_of
from propensitybench.store import RunFile


def tasks_drawn(run: RunFile) -> int:
    """Number of tasks in the batches so far, in the order of the run; without a rule, all that it plays."""
    rule, gate, most = run.manifest.stopping_rule, run.manifest.gate, run.manifest.tasks
    if gate is not None:
        return next((look for look in gate.looks if look >= run.begun()), gate.looks[-1])
    if rule is None:
        return run.planned
    batch = rule.batch * _namings(run)
    begun = max(run.begun(), rule.least * _namings(run))
    return min(most, -(-begun // batch) * batch)


def is_drawn(run: RunFile, number: int, drawn: int) -> bool:
    """Whether a task of that number is among the first ``drawn``; without any rule, every one is."""
    manifest = run.manifest
    return (manifest.stopping_rule is None and manifest.gate is None) or number < drawn


def stopping_state(run: RunFile) -> StoppingState | None:
    """The state of a run's stopping rule; None if it has none."""
    rule = run.manifest.stopping_rule
    if rule is None:
        return None
    records = list(run.records())
    levels = run.manifest.protocol.last_level + 1
    tables = {
        naming: table_of([record for record in records if record.metadata.naming == naming], levels)
        for naming in run.manifest.selection.namings
    }
    drawn = tasks_drawn(run)
    narrow = all(is_narrow(table, rule.half_width, rule.least) for table in tables.values())
    return StoppingState(
        half_width=rule.half_width,
        batch=rule.batch,
        least=rule.least,
        drawn=drawn,
        reached={naming: half_width(table) for naming, table in tables.items()},
        met=len(records) == drawn and narrow,
    )


def tasks_to_draw(run: RunFile) -> int:
    """Number of tasks to draw once every task drawn so far has ended: the same, or one more batch.

    Under a gate the same: whether there are more is for the comparison with its base to say.
    """
    state = stopping_state(run)
    if state is None or state.met:
        return tasks_drawn(run)
    return min(run.manifest.tasks, state.drawn + state.batch * _namings(run))


def is_complete(run: RunFile) -> bool:
    """Whether every drawn task is finished and the rule asks for no more."""
    drawn = tasks_drawn(run)
    return run.finished() == drawn == tasks_to_draw(run)


def _namings(run: RunFile) -> int:
    return len(set(run.manifest.selection.namings))
