"""Which tasks of a run are drawn, where a stopping rule decides that.

Everything is read from the run file, and a decision falls only when every task drawn so far has ended. So
a run that was interrupted, however often, draws the same tasks as one that was not.
"""

from propensitybench.metrics.sequential import StoppingState, half_width, is_narrow
from propensitybench.metrics.table import table_of
from propensitybench.store import RunFile


def tasks_drawn(run: RunFile) -> int:
    """How many tasks are drawn so far, from the first in the order of the run; without a rule, all."""
    rule, most = run.manifest.stopping_rule, run.manifest.tasks
    if rule is None:
        return most
    batch = rule.batch * _namings(run)
    begun = max(run.begun(), rule.least * _namings(run))
    return min(most, -(-begun // batch) * batch)


def stopping_state(run: RunFile) -> StoppingState | None:
    """How a run stands to its stopping rule; None if it has none."""
    rule = run.manifest.stopping_rule
    if rule is None:
        return None
    records = list(run.records())
    levels = run.manifest.protocol.levels + 1
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
    """How many tasks should be drawn, now that every task drawn so far has ended."""
    state = stopping_state(run)
    if state is None or state.met:
        return tasks_drawn(run)
    return min(run.manifest.tasks, state.drawn + state.batch * _namings(run))


def is_complete(run: RunFile) -> bool:
    """Whether nothing is left to play: no drawn task is open or errored, and no more are to be drawn."""
    drawn = tasks_drawn(run)
    return run.finished() == drawn == tasks_to_draw(run)


def _namings(run: RunFile) -> int:
    return len(set(run.manifest.selection.namings))
