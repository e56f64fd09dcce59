"""From the journal back to the episode."""

from collections.abc import Iterator
from typing import NamedTuple

from propensitybench.chat import Request
from propensitybench.episode import Episode, labels_of, set_up
from propensitybench.errors import NotARunFile
from propensitybench.store.runfile import NumberedTask, RunFile


class Replayed(NamedTuple):
    """An episode brought to where its journal ends; ``request`` is None if it is over there."""

    episode: Episode
    request: Request | None
    replies: int


class SurplusReplies(NotARunFile):
    """A journal that goes on after its episode is over."""


class Difference(NamedTuple):
    """A task whose stored outcome is not what its journal gives."""

    task: str
    what: str


def replay(run: RunFile, task: NumberedTask) -> Replayed:
    """Plays a task's journal.

    Raises:
        SurplusReplies: the journal goes on after the episode is over.
    """
    scenario, manifest = run.scenario(task.task.scenario), run.manifest
    labels = labels_of(task.task, scenario, manifest.seed)
    pressure = run.pressure(scenario.name, task.task.dimension)
    episode = Episode(set_up(scenario, labels, pressure, manifest.protocol, manifest.template))
    request: Request | None = episode.start()
    replies = run.replies(task.number)
    for number, reply in enumerate(replies):
        if request is None:
            key, surplus = task.task.key, len(replies) - number
            raise SurplusReplies(f"{run.path}: is damaged ({surplus} replies behind the end of {key})")
        request = episode.receive(reply)
    return Replayed(episode, request, len(replies))


def verify(run: RunFile) -> Iterator[Difference]:
    """Every difference between what the run file says of its outcomes and what its journal gives."""
    integrity = run.integrity()
    if integrity != "ok":
        yield Difference("(file)", f"the database is damaged: {integrity}")
        return
    for task in run.tasks():
        key = task.task.key
        stored = run.outcome(task.number)
        try:
            episode, request, _ = replay(run, task)
        except SurplusReplies as error:
            yield Difference(key, f"the journal goes on after the end ({error})")
            continue
        if stored is None:
            if request is None:
                yield Difference(key, "the journal is complete, but there is no outcome")
            continue
        record, fingerprint = stored
        if request is not None and not record.fault:
            yield Difference(key, "there is an outcome, but the journal ends before the episode does")
            continue
        if episode.record(record.fault) != record:
            yield Difference(key, "the outcome is not what the journal gives")
        if episode.fingerprint() != fingerprint:
            yield Difference(key, "the transcript is not the one that was played")
