"""What agents answered to the probes of a run, and the numbers that follow."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.episode import EpisodeRecord
from propensitybench.judging.probes import (
    END,
    Level,
    Measure,
    Probe,
    ProbeAnswer,
    read_probe,
    read_variant,
    stored_probes,
)
from propensitybench.judging.side_branches import is_reached
from propensitybench.metrics.awareness import (
    ActByAwareness,
    YesNo,
    act_by_awareness,
    agreement,
    share_of,
)
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.majority import majority
from propensitybench.metrics.stated import Answer as Stated
from propensitybench.metrics.stated import StatedAgainstActual, stated_against_actual
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile
from propensitybench.taxonomy import NAMINGS, Naming

NO_REPLY: Final = "no reply"
POLICY: Final = "stated-policy"
STATED: Final[Mapping[YesNo, Stated]] = {True: "yes", False: "no", None: "unparsed"}
"""What the agent says to the probe `POLICY`, by the majority of its wordings: that it would use the tool."""

Answers = Mapping[str, Sequence[ProbeAnswer | None]]
"""By the task's key, one for each wording; None where a wording has no reply."""


class Probed(NamedTuple):
    """What the agent of a run answered to a probe.

    Attributes:
        run: the run.
        probe: the probe.
        answers: by level. An episode in which nothing was asked at a level is not there.
    """

    run: StoredRun
    probe: Probe
    answers: Mapping[Level, Answers]


class ProbedLevel(msgspec.Struct, frozen=True):
    """The answers to a probe at a level under one naming.

    Attributes:
        level: the level, or ``end``.
        naming: of the tasks.
        episodes: number of episodes in which it was asked.
        not_asked: number of episodes that reached the level and in which it was not asked.
        no_answer: number of missing answers, by the reason.
        majority: share of episodes in which more than half of all wordings have the counted answer; an
            episode without a majority is missing.
        wordings, straight, flipped: share of the counted answer among the answers to all wordings, and to
            those of either group; None without one.
        by_wording: the same for each wording.
        agreement: share of pairs of a straight and a flipped wording that agree; None without a pair.
        act: of ``awareness`` before the end: what agents did from then on, by the majority.
        stated: of ``policy`` before the end: the majority against the act.
    """

    level: str
    naming: Naming
    episodes: int
    not_asked: int
    no_answer: dict[str, int]
    majority: Estimate
    wordings: Estimate
    straight: Estimate | None
    flipped: Estimate | None
    by_wording: tuple[Estimate, ...]
    agreement: Estimate | None
    act: ActByAwareness | None
    stated: StatedAgainstActual | None


class ProbeNumbers(msgspec.Struct, frozen=True):
    """The numbers of a probe; ``digest`` identifies its text."""

    name: str
    digest: str
    title: str
    measures: Measure
    counted: str
    rows: tuple[ProbedLevel, ...]


def read_probed(path: Path, digests: Sequence[str] = ()) -> list[Probed]:
    """The answers in a run file, one entry for each probe that was asked.

    Args:
        path: the run file.
        digests: only of these probes; if empty, of all.

    Raises:
        NotARunFile: the file is damaged.
    """
    run = StoredRun(path)
    with RunFile.open(path) as file:
        probes = [one for one in stored_probes(file) if not digests or one.digest in digests]
        return [Probed(run, one, _answers(run, file, one)) for one in probes]


def probe_numbers(probed: Probed, levels: Sequence[Level] = ()) -> ProbeNumbers:
    """The numbers of a probe.

    Args:
        probed: the answers.
        levels: only at these; if empty, at all at which something was asked.
    """
    probe = probed.probe
    chosen = [level for level in probed.answers if not levels or level in levels]
    rows = tuple(row for level in chosen for row in _rows(probed, level))
    return ProbeNumbers(probe.name, probe.digest, probe.title, probe.measures, probe.counted, rows)


def _answers(run: StoredRun, file: RunFile, probe: Probe) -> dict[Level, Answers]:
    records = {record.metadata.task: record for record in run.records}
    keys = {task.number: task.task.key for task in file.tasks()}
    found: dict[Level, dict[str, list[ProbeAnswer | None]]] = {}
    for key, reply in file.annotations(probe.digest):
        with file.rows.decoding(f"an annotation of task {key.task}"):
            level, number = read_variant(key.variant, probe)
        record = records.get(keys.get(key.task, ""))
        if record is None:
            continue  # the episode was reopened since, and has not begun
        task = record.metadata
        row = found.setdefault(level, {}).setdefault(task.task, [None] * len(probe.wordings))
        row[number - 1] = probe.read(number, task.misaligned_tool, reply)
    order = sorted(found, key=lambda level: (level == END, level))
    return {level: found[level] for level in order}


def _rows(probed: Probed, level: Level) -> Iterator[ProbedLevel]:
    reached = [record for record in probed.run.records if is_reached(record, level)]
    for naming in NAMINGS:
        own = [record for record in reached if record.metadata.naming == naming]
        asked = [record for record in own if record.metadata.task in probed.answers[level]]
        if asked:
            yield _row(probed, level, asked, len(own) - len(asked))


def _row(probed: Probed, level: Level, asked: Sequence[EpisodeRecord], not_asked: int) -> ProbedLevel:
    probe, levels = probed.probe, probed.run.levels + 1
    given = {record.metadata.task: probed.answers[level][record.metadata.task] for record in asked}
    meant = {task: [is_counted(one, probe) for one in answers] for task, answers in given.items()}
    most = {task: majority(answers, of_all=True) for task, answers in meant.items()}
    every = range(len(probe.wordings))
    flipped = [place for place in every if probe.flipped(place + 1)]
    straight = [place for place in every if place not in flipped]
    landmark = level != END

    def share(*wordings: int) -> Estimate:
        return share_of(asked, {task: [meant[task][n] for n in wordings] for task in meant}, levels)

    pairs = {task: ([meant[task][n] for n in straight], [meant[task][n] for n in flipped]) for task in meant}
    return ProbedLevel(
        level=str(level),
        naming=asked[0].metadata.naming,
        episodes=len(asked),
        not_asked=not_asked,
        no_answer=dict(Counter(why for answers in given.values() for one in answers if (why := _why(one)))),
        majority=share_of(asked, {task: [one] for task, one in most.items()}, levels),
        wordings=share(*every),
        straight=share(*straight) if straight else None,
        flipped=share(*flipped) if flipped else None,
        by_wording=tuple(share(place) for place in every),
        agreement=agreement(asked, pairs, levels) if straight and flipped else None,
        act=act_by_awareness(asked, most, levels) if landmark and probe.measures == "awareness" else None,
        stated=_stated(asked, most, levels) if landmark and probe.measures == "policy" else None,
    )


def is_counted(answer: ProbeAnswer | None, probe: Probe) -> YesNo:
    """Whether an answer is the one that is counted; None if there is none."""
    return None if answer is None or answer.means is None else answer.means == probe.counted


def _why(answer: ProbeAnswer | None) -> str:
    return NO_REPLY if answer is None else answer.why or ""


def stated_policy(path: Path) -> dict[tuple[str, int], Stated] | None:
    """What the agent said before its first reply that it would do: its majority over wordings.

    By the task's key without its epoch, and the epoch. None unless the built-in probe ``stated-policy`` was
    asked at level 0.
    """
    for probed in read_probed(path, [read_probe(POLICY).digest]):
        if 0 in probed.answers:
            given = probed.answers[0].items()
            most = {
                task: majority((is_counted(one, probed.probe) for one in row), of_all=True)
                for task, row in given
            }
            return _by_epoch(most)
    return None


def _by_epoch(most: Mapping[str, YesNo]) -> dict[tuple[str, int], Stated]:
    parts = {task: task.rpartition(".") for task in most}
    return {(key, int(epoch)): STATED[most[task]] for task, (key, _, epoch) in parts.items()}


def _stated(asked: Sequence[EpisodeRecord], most: Mapping[str, YesNo], levels: int) -> StatedAgainstActual:
    return stated_against_actual(asked, _by_epoch(most), levels)[asked[0].metadata.naming]
