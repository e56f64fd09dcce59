"""Tasks, and how they are selected from a data set: filters and balanced samples."""

from collections.abc import Collection, Iterator, Sequence
from math import lcm
from typing import Final, NamedTuple

import msgspec

from propensitybench.digests import digest, seed_from
from propensitybench.errors import BadInput
from propensitybench.scenarios.model import Scenario
from propensitybench.tabular import Brief
from propensitybench.taxonomy import (
    ESCALATING,
    NAMINGS,
    PAPER_LADDER,
    Naming,
    Taxonomy,
    naming,
    taxonomy,
)

_FILTERS: Final = ("domains", "workspaces", "roles", "capabilities", "dimensions")


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A selection of tasks; an empty filter selects everything.

    Neither the order of a filter's names nor their repetition says anything, so they are kept sorted.

    Attributes:
        domains: of the scenarios.
        workspaces: of the scenarios.
        roles: of the agent.
        capabilities: of the scenarios.
        dimensions: pressure dimensions.
        namings: names of the misaligned tool; both by default.
        limit: number of pairs of a scenario and a dimension, drawn as a balanced sample; each is played
            under every naming, once per epoch.
        part: ``(i, n)``: only the i-th (from 0) of n parts of a Latin square over scenarios and dimensions,
            in which every scenario and every dimension is in each part as evenly as it can be. The limit is
            then that of all parts together, and takes fewer scenarios with all their dimensions.
        epochs: how often each task is played.
    """

    domains: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    namings: tuple[Naming, ...] = NAMINGS
    limit: int | None = None
    epochs: int = 1
    part: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Sorts the filters."""
        for name in _FILTERS:
            msgspec.structs.force_setattr(self, name, tuple(sorted(set(getattr(self, name)))))
        known = [name for name in NAMINGS if name in self.namings]
        others = sorted(set(self.namings) - set(known))
        msgspec.structs.force_setattr(self, "namings", (*known, *others))

    def check(self, lists: Taxonomy) -> None:
        """Checks that the filters and numbers can select something from data with those names.

        Raises:
            UnknownName: a filter has an unknown name; the message suggests similar ones.
            BadInput: two filters exclude each other, or a number is below one.
        """
        for name, number in (("limit", self.limit), ("epochs", self.epochs)):
            if number is not None and number < 1:
                raise BadInput(f"{name}: must be 1 or more, found {number}")
        if self.part is not None and not 0 <= self.part[0] < self.part[1]:
            raise BadInput(f"part: must be like (0, 2), the first of two, found {self.part}")
        for name in self.domains:
            lists.domain(name)
        for name in self.dimensions:
            lists.dimension(name)
        for name in self.namings:
            naming(name)
        domains: Collection[str] = self.domains or lists.domains
        for name in self.workspaces:
            _must_meet("workspace", name, [lists.workspace(name).domain], domains)
        workspaces = self.workspaces or [w.name for w in lists.workspaces.values() if w.domain in domains]
        for name in self.roles:
            lists.role(name)
            _must_meet(
                "role", name, [w.name for w in lists.workspaces.values() if name in w.roles], workspaces
            )
        domains = {lists.workspaces[name].domain for name in workspaces}
        for name in self.capabilities:
            _must_meet("capability", name, [lists.capability(name).domain], domains)

    def takes(self, scenario: Scenario) -> bool:
        """Whether the filters select a scenario."""
        return (
            (not self.domains or scenario.domain in self.domains)
            and (not self.workspaces or scenario.workspace in self.workspaces)
            and (not self.roles or scenario.role in self.roles)
            and (not self.capabilities or scenario.capability in self.capabilities)
        )

    def covers(self, other: "Selection") -> bool:
        """Whether every task of another selection from the same data is one of this one.

        A sample begins with any smaller one of the same filters.
        """
        if self.epochs < other.epochs or not set(self.namings) >= set(other.namings):
            return False
        if self.part is None and self.limit is None:
            filters = [(getattr(self, name), getattr(other, name)) for name in _FILTERS]
            return all(not one or (theirs and set(one) >= set(theirs)) for one, theirs in filters)
        if self.part != other.part or any(getattr(self, name) != getattr(other, name) for name in _FILTERS):
            return False
        if self.part is not None:
            return self.limit == other.limit
        return self.limit is not None and other.limit is not None and self.limit >= other.limit


def _must_meet(kind: str, name: str, homes: Collection[str], chosen: Collection[str]) -> None:
    if not set(homes) & set(chosen):
        places = " and ".join(homes)
        raise BadInput(
            f"{kind} {name!r} is in {places}, which the other filters exclude; change them or the {kind}"
        )


class Task(NamedTuple):
    """A scenario under a dimension of pressure and a naming, in one epoch.

    Attributes:
        message: number (1..12) of the one message that it meets, in arms that play each message alone; 0
            stands for the whole chain.
    """

    scenario: str
    dimension: str
    naming: Naming
    epoch: int
    message: int = 0

    @property
    def key(self) -> str:
        """The task's name, unique in a run and safe in file names and URLs."""
        message = f".m{self.message}" if self.message else ""
        return f"{self.scenario}.{self.dimension}.{self.naming}{message}.{self.epoch}"


class TaskMetadata(Brief, msgspec.Struct, frozen=True):
    """A task's attributes: the columns of every table. Never shown to a model.

    Attributes:
        task: the task's key, ``scenario.dimension.naming.epoch``.
        scenario: the scenario's name.
        domain: its domain.
        workspace: its workplace.
        role: the agent's role there.
        capability: its capability; None for a published scenario outside the lists.
        dimension: the pressure dimension.
        naming: which name the misaligned tool has.
        epoch: counted from 1.
        seed: 64-bit random seed, the only source of randomness in the task's episode.
        storyline: name of the storyline of its pressure messages; empty if the scenario has its own.
        misaligned_tool: name of the misaligned tool under the task's naming.
        aligned_tool: name of the aligned tool.
        arm: the variant under which it is played; see `propensitybench.taxonomy.ARMS`.
        ladder: who writes the messages; see `propensitybench.taxonomy.LADDERS`.
        message: see `Task`.
    """

    task: str
    scenario: str
    domain: str
    workspace: str
    role: str
    capability: str | None
    dimension: str
    naming: Naming
    epoch: int
    seed: int
    storyline: str = ""
    misaligned_tool: str = ""
    aligned_tool: str = ""
    arm: str = ESCALATING
    ladder: str = PAPER_LADDER
    message: int = 0


def task_of(metadata: TaskMetadata) -> Task:
    """The task that has those attributes."""
    return Task(metadata.scenario, metadata.dimension, metadata.naming, metadata.epoch, metadata.message)


def task_metadata(
    task: Task,
    scenario: Scenario,
    run_seed: int,
    storyline: str = "",
    arm: str = ESCALATING,
    ladder: str = PAPER_LADDER,
) -> TaskMetadata:
    """A task's metadata; its seed depends only on the run's seed and the task's key."""
    return TaskMetadata(
        task=task.key,
        scenario=scenario.name,
        domain=scenario.domain,
        workspace=scenario.workspace,
        role=scenario.role,
        capability=scenario.capability,
        dimension=task.dimension,
        naming=task.naming,
        epoch=task.epoch,
        seed=seed_from(run_seed, task.key),
        storyline=storyline,
        misaligned_tool=scenario.misaligned.face(task.naming).name,
        aligned_tool=scenario.aligned.name,
        arm=arm,
        ladder=ladder,
        message=task.message,
    )


class _Pair(NamedTuple):
    scenario: str
    dimension: str


def tasks(scenarios: Sequence[Scenario], selection: Selection, seed: int, alone: int = 0) -> Iterator[Task]:
    """The selected tasks, ordered so that the tasks of a stopped run are a balanced sample.

    Args:
        scenarios: the data set's scenarios, which the filters have yet to select from.
        selection: filters, limit, namings and epochs; without dimensions, the six built-in ones.
        seed: random seed of the order.
        alone: how many messages are played each in a task of its own; 0 plays them in one.
    """
    chosen = [scenario for scenario in scenarios if selection.takes(scenario)]
    pairs = spread(chosen, selection.dimensions or tuple(taxonomy().dimensions), seed)
    taken = pairs[: selection.limit] if selection.part is None else latin(pairs, selection)
    for epoch in range(1, selection.epochs + 1):
        for pair in taken:
            for name in selection.namings:
                for message in range(1, alone + 1) if alone else (0,):
                    yield Task(pair.scenario, pair.dimension, name, epoch, message)


def latin(pairs: "Sequence[_Pair]", selection: Selection) -> "list[_Pair]":
    """The pairs of the selection's part of a Latin square.

    The k-th scenario under the j-th dimension is in part k + j, modulo the number of parts. The dimensions
    are numbered alike for all scenarios: `spread` rotates them, and would undo the square.
    """
    index, count = selection.part or (0, 1)
    number = {name: place for place, name in enumerate(dict.fromkeys(pair.dimension for pair in pairs))}
    rows: dict[str, list[_Pair]] = {}
    for pair in pairs:
        rows.setdefault(pair.scenario, []).append(pair)
    kept: list[_Pair] = []
    room = len(pairs) if selection.limit is None else selection.limit
    for rank, row in enumerate(rows.values()):
        row.sort(key=lambda pair: number[pair.dimension])
        kept += [pair for turn, pair in enumerate(row[:room]) if (rank + turn) % count == index]
        room -= len(row)
        if room <= 0:
            break
    return kept


def spread(scenarios: Sequence[Scenario], dimensions: Sequence[str], seed: int) -> list[_Pair]:
    """Every pair of a scenario and a dimension, ordered so that any first part is a balanced sample.

    Domains alternate. Within a domain, every scenario comes once, in random order, before any comes with a
    second dimension. Dimensions rotate, so that their counts differ by at most one until every scenario of
    the smallest domain has come once. A sample of n pairs is the beginning of any larger one.
    """
    by_domain: dict[str, list[str]] = {}
    for scenario in scenarios:
        by_domain.setdefault(scenario.domain, []).append(scenario.name)
    names = [sorted(by_domain[domain], key=lambda n: digest(str(seed), n)) for domain in sorted(by_domain)]
    dims = sorted(dimensions, key=lambda name: digest(str(seed), name))
    period = lcm(len(names), len(dims)) if names else 1

    def in_domain(index: int) -> Iterator[_Pair]:
        for turn in range(len(dims)):
            for place, name in enumerate(names[index]):
                position = place * len(names) + index
                # Shifted by one each period; otherwise a domain would get only some of the dimensions.
                first = position + position // period
                yield _Pair(name, dims[(first + turn) % len(dims)])

    queues = [in_domain(index) for index in range(len(names))]
    pairs: list[_Pair] = []
    while queues:
        still: list[Iterator[_Pair]] = []
        for queue in queues:
            pair = next(queue, None)
            if pair is not None:
                pairs.append(pair)
                still.append(queue)
        queues = still
    return pairs
