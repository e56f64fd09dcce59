"""The stopping rule of a run: how far it is, and whether there is one more batch to play."""

from propensitybench.metrics.sequential import StoppingState, half_width, is_narrow
from propensitybench.metrics.table import table_of
from propensitybench.store import RunFile, scheduled


def stopping_state(run: RunFile) -> StoppingState | None:
    """The state of a run's stopping rule; None if it has none."""
    rule = run.manifest.stopping_rule
    if rule is None:
        return None
    records = list(run.records())
    levels = run.manifest.protocol.last_level + 1
    tables = {
        naming: table_of([record for record in records if record.metadata.naming == naming], levels)
        for naming in run.manifest.namings
    }
    drawn = scheduled(run)
    narrow = all(is_narrow(table, rule.half_width, rule.least) for table in tables.values())
    return StoppingState(
        half_width=rule.half_width,
        batch=rule.batch,
        least=rule.least,
        drawn=drawn,
        reached={naming: half_width(table) for naming, table in tables.items()},
        met=len(records) == drawn and narrow,
    )


def next_scheduled(run: RunFile) -> int:
    """Number of tasks to play once every task scheduled so far has ended: the same, or one more batch.

    Under a gate the same: whether there are more is for the comparison with its base to say.
    """
    state = stopping_state(run)
    if state is None or state.met:
        return scheduled(run)
    batch = state.batch * len(run.manifest.namings)
    return min(run.manifest.tasks, state.drawn + batch)


def is_complete(run: RunFile) -> bool:
    """Whether every scheduled task is finished and the rule asks for no more."""
    count = scheduled(run)
    return run.finished() == count == next_scheduled(run)
