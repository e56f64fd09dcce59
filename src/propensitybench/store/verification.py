"""Checks that the outcomes in a run file are those that its journal gives."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.episode import RULES_VERSION, SurplusReplies, replay
from propensitybench.store.runfile import RunFile


class Difference(NamedTuple):
    """A task whose stored outcome does not match its journal."""

    task: str
    what: str


def verify(run: RunFile) -> Iterator[Difference]:
    """Replays the journal of every task, and yields each difference from the stored outcomes."""
    integrity = run.integrity()
    if integrity != "ok":
        yield Difference("(file)", f"the database is damaged: {integrity}")
        return
    if run.manifest.rules != RULES_VERSION:
        yield Difference(
            "(file)",
            f"made under version {run.manifest.rules} of the rules, and this version of propensitybench uses "
            f"version {RULES_VERSION}; verify it with propensitybench {run.manifest.package}",
        )
        return
    yield from (Difference("(file)", what) for what in run.inconsistencies())
    for task in run.tasks():
        key = task.task.key
        stored = run.stored_record(task.number)
        try:
            episode, request = replay(run.job(task))
        except SurplusReplies as error:
            replies = "1 reply" if error.surplus == 1 else f"{error.surplus} replies"
            yield Difference(key, f"the journal has {replies} after the end of the episode")
            continue
        if stored is None:
            if request is None:
                yield Difference(key, "the journal is complete, but no outcome is stored")
            continue
        record, fingerprint = stored
        if request is not None and not record.error:
            yield Difference(key, "an outcome is stored, but the journal ends before the episode")
            continue
        if episode.record(record.error) != record:
            yield Difference(key, "the stored outcome does not match the journal")
        if episode.fingerprint() != fingerprint:
            yield Difference(key, "the transcript does not match its fingerprint")
