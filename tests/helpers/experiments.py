"""Designs, cells and short episodes of experiments, for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Unpack

import msgspec
from helpers.records import About, ended

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.experiments.design import Design, Experiment, experiment_of
from propensitybench.experiments.results import CellRecords
from propensitybench.taxonomy import ArmName

NEVER: Final = "simulated/never"
ALL_ARMS: Final[tuple[ArmName, ...]] = (
    "escalating",
    "placebo",
    "pure",
    "fresh",
    "open",
    "single",
    "repeat",
)


def design(**settings: Any) -> Design:
    """A design; by default of one agent under rising pressure."""
    plain = {"format": "propensitybench-experiment/1", "name": "a-test", "models": [{"name": NEVER}]}
    return msgspec.convert({**plain, **settings}, Design)


def experiment(beside: Path = Path(), **settings: Any) -> Experiment:
    """The experiment of a design."""
    return experiment_of(design(**settings), beside)


def completed(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The aligned tool succeeded at that level, after which nothing can follow."""
    return ended(Outcome.COMPLETED, level, **about)


def under(arm: str, record: EpisodeRecord, message: int = 0) -> EpisodeRecord:
    """The record as one of an arm, and of one of its messages if each is played alone."""
    about = record.metadata
    key = about.task if not message else about.task.replace(".harmful.", f".harmful.m{message}.")
    metadata = msgspec.structs.replace(about, arm=arm, message=message, task=key)
    return msgspec.structs.replace(record, metadata=metadata)


def able(record: EpisodeRecord) -> EpisodeRecord:
    """The record as one of an agent that could use the tools."""
    return msgspec.structs.replace(record, stats=msgspec.structs.replace(record.stats, aligned_calls_right=1))


def cell(
    arm: ArmName, records: Sequence[EpisodeRecord], levels: Mapping[str, str] | None = None
) -> CellRecords:
    """A cell with these records, of an agent that could use the tools."""
    return CellRecords(arm, levels or {}, [able(under(arm, one, one.metadata.message)) for one in records])
