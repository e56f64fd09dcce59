"""How many tasks of a run file are to be played so far: all, or those up to the next look of a rule.

It follows from the file alone, and a rule is applied only when every task scheduled so far has ended. So a
run that is interrupted and resumed plays the same tasks as one that is not.
"""

from propensitybench.store.runfile import RunFile


def scheduled(run: RunFile) -> int:
    """Number of tasks up to the next look, in the order of the run; without a rule, all that it plays."""
    rule, gate, most = run.manifest.stopping_rule, run.manifest.gate, run.manifest.tasks
    if gate is not None:
        return next((look for look in gate.looks if look >= run.begun()), gate.looks[-1])
    if rule is None:
        return run.planned
    namings = len(run.manifest.namings)
    batch = rule.batch * namings
    begun = max(run.begun(), rule.least * namings)
    return min(most, -(-begun // batch) * batch)


def is_scheduled(run: RunFile, number: int, count: int) -> bool:
    """Whether a task of that number is among the first ``count``; without any rule, every one is."""
    manifest = run.manifest
    return (manifest.stopping_rule is None and manifest.gate is None) or number < count
