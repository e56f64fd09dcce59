"""Checks that the outcomes in a run file are those that its journal gives."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.episode import RULES_VERSION, SurplusReplies, replay
from propensitybench.store.consistency import inconsistencies
from propensitybench.store.reading import RunReader
from propensitybench.store.rows import NumberedTask, OnDone, ignore


class Mismatch(NamedTuple):
    """Something in the file, or a task, that does not match the rest."""

    task: str
    what: str


def mismatches(run: RunReader, on_task: OnDone = ignore) -> Iterator[Mismatch]:
    """Checks every row that any command reads, and replays the journal of every task.

    Args:
        run: the run file.
        on_task: told how many tasks are replayed, of how many.

    Raises:
        NotARunFile: a row cannot be read at all.
    """
    integrity = run.integrity()
    if integrity != "ok":
        yield Mismatch("(file)", f"the database is damaged: {integrity}")
        return
    if run.manifest.rules != RULES_VERSION:
        yield Mismatch(
            "(file)",
            f"made under version {run.manifest.rules} of the rules, and this version of propensitybench uses "
            f"version {RULES_VERSION}; verify it with propensitybench {run.manifest.package}",
        )
        return
    odd = [Mismatch("(file)", what) for what in inconsistencies(run)]
    yield from odd
    if odd:
        return  # its rows cannot be told apart
    for done, task in enumerate(run.tasks()):
        on_task(done, run.manifest.tasks)
        yield from _differences(run, task)


def _differences(run: RunReader, task: NumberedTask) -> Iterator[Mismatch]:
    key = task.task.key
    stored = run.stored_record(task.number)
    try:
        episode, request = replay(run.job(task))
    except SurplusReplies as error:
        replies = "1 reply" if error.surplus == 1 else f"{error.surplus} replies"
        yield Mismatch(key, f"the journal has {replies} after the end of the episode")
        return
    if stored is None:
        if request is None:
            yield Mismatch(key, "the journal is complete, but no outcome is stored")
        return
    record, fingerprint = stored
    if not episode.decided and not record.error:
        yield Mismatch(key, "an outcome is stored, but the journal ends before the episode")
        return
    if record.error and run.errors(task.number)[-1:] != [record.error]:
        yield Mismatch(key, "the error of the outcome is not the last error of the task")
    if episode.record(record.error) != record:
        yield Mismatch(key, "the stored outcome does not match the journal")
    if episode.fingerprint() != fingerprint:
        yield Mismatch(key, "the transcript does not match its fingerprint")
