"""One model as the signs see it: its episodes, what it said, and what people found."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.compare import matched
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.judged import Judged
from propensitybench.metrics.scores import Scorable
from propensitybench.metrics.stated import Answer, Crossed, crossed
from propensitybench.metrics.table import Table, is_finished, table_of
from propensitybench.taxonomy import NAMINGS, Naming, taxonomy

FIRST: Final[Naming] = "harmful"
DIMENSIONS: Final = 6


class Read(NamedTuple):
    """What readers found in the misaligned episodes of the naming under which the signs are tested.

    Attributes:
        sample: the episodes, with what people say of them. Judges' labels play no part.
        categories: names of the answers.
        none: code of the category that stands for no reason at all.
        readers: who read, people and judges.
    """

    sample: Judged
    categories: Sequence[str]
    none: int
    readers: tuple[str, ...]


class IndexedModel(NamedTuple):
    """A model's propensity (0..1) and its value on a capability index."""

    name: str
    propensity: float
    capability: float


class Arms(NamedTuple):
    """The tasks that were played both without and under pressure, in the same order."""

    placebo: Table
    escalating: Table


class FigureMark(msgspec.Struct, frozen=True):
    """One mark of a sign's figure.

    Attributes:
        label: e.g. a domain, or a level.
        value: a share (0..1).
        ci95: unadjusted interval.
        group: which of several series it belongs to.
        at: place on the other axis: the level, or the model's value on an index.
    """

    label: str
    value: float | None
    ci95: Interval | None
    group: str = ""
    at: float | None = None


class Subject(msgspec.Struct, frozen=True, dict=True):
    """One model.

    Attributes:
        name: in tables.
        run: under rising pressure.
        placebo: the same tasks under messages without pressure; None if there is none.
        stated: what it said of its tasks, see `stated_against_actual`; None if it was not asked.
        read: what readers found; None if nobody read.
        indexed: all models that are tested and have a value on the capability index; None without an index.
    """

    name: str
    run: Scorable
    placebo: Scorable | None = None
    stated: Mapping[tuple[str, int], Answer] | None = None
    read: Read | None = None
    indexed: tuple[IndexedModel, ...] | None = None

    @cached_property
    def tables(self) -> Mapping[Naming, Table]:
        """The episodes of each naming that was played."""
        return _tables(self.run)

    @property
    def naming(self) -> Naming:
        """Under which the signs are tested: harmful names, unless only benign ones were played."""
        return FIRST if FIRST in self.tables or not self.tables else next(iter(self.tables))

    @property
    def table(self) -> Table:
        """The episodes of that naming."""
        return self.tables[self.naming]

    @cached_property
    def arms(self) -> Arms | None:
        """The tasks of that naming that were played in both arms; None if there are none."""
        still = {} if self.placebo is None else _tables(self.placebo)
        if self.naming not in still:
            return None
        arms = Arms(*matched(still[self.naming], self.table))
        return arms if len(arms.placebo) else None

    @cached_property
    def asked(self) -> Crossed | None:
        """The tasks of that naming that it was asked about; None if it was not asked."""
        if self.stated is None:
            return None
        own = [one for one in self.run.records if one.metadata.naming == self.naming]
        return crossed(own, self.stated, self.levels + 1)

    @property
    def levels(self) -> int:
        """Number of pressure messages."""
        return self.run.levels

    @cached_property
    def full(self) -> int:
        """Number of tasks of the benchmark in the domains of the run, under one naming.

        Of a data set's own domains only the tasks of the run are known.
        """
        if not self.tables:
            return 0
        domains = set(np.unique(self.table.domain).tolist())
        built_in = DIMENSIONS * sum(slot.domain in domains for slot in taxonomy().allocation)
        return built_in + int((~np.isin(self.table.domain, list(taxonomy().domains))).sum())

    @property
    def unended(self) -> int:
        """Number of tasks that have not begun or not ended."""
        ended = sum(record.stats.outcome != "unfinished" for record in self.run.records)
        rule = self.run.stopping_rule
        return (self.run.planned if rule is None else rule.drawn) - ended

    @property
    def lost(self) -> int:
        """Number of tasks that ended without a score."""
        return sum(not is_finished(one) and one.stats.outcome != "unfinished" for one in self.run.records)


def _tables(run: Scorable) -> dict[Naming, Table]:
    found: dict[Naming, Table] = {}
    for naming in NAMINGS:
        if records := [record for record in run.records if record.metadata.naming == naming]:
            found[naming] = table_of(records, run.levels + 1)
    return found
