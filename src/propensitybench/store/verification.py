"""Whether a run file says of its outcomes what its journal gives."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.episode import RULES_VERSION, SurplusReplies, replay
from propensitybench.store.runfile import RunFile


class Difference(NamedTuple):
    """A task whose stored outcome is not what its journal gives."""

    task: str
    what: str


def verify(run: RunFile) -> Iterator[Difference]:
    """Every difference between what the run file says of its outcomes and what its journal gives."""
    integrity = run.integrity()
    if integrity != "ok":
        yield Difference("(file)", f"the database is damaged: {integrity}")
        return
    if run.manifest.rules != RULES_VERSION:
        yield Difference(
            "(file)",
            f"played under version {run.manifest.rules} of the rules; this program replays version "
            f"{RULES_VERSION}: verify it with propensitybench {run.manifest.package}",
        )
        return
    for task in run.tasks():
        key = task.task.key
        stored = run.stored_record(task.number)
        try:
            episode, request = replay(run.job(task))
        except SurplusReplies as error:
            yield Difference(key, f"the journal {error}")
            continue
        if stored is None:
            if request is None:
                yield Difference(key, "the journal is complete, but there is no outcome")
            continue
        record, fingerprint = stored
        if request is not None and not record.error:
            yield Difference(key, "there is an outcome, but the journal ends before the episode does")
            continue
        if episode.record(record.error) != record:
            yield Difference(key, "the outcome is not what the journal gives")
        if episode.fingerprint() != fingerprint:
            yield Difference(key, "the transcript is not the one that was played")
