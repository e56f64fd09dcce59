"""The specification of a run, and the run file made from it."""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_tools import with_tools
from propensitybench.engine.agents import dialect_of
from propensitybench.episode import (
    PAPER,
    RULES_VERSION,
    EpisodeSettings,
    Protocol,
    built_in_template,
    system_message,
    template_text,
)
from propensitybench.episode.tools import Toolbox
from propensitybench.errors import BadInput
from propensitybench.pressure import Chain, pressure_chain
from propensitybench.scenarios.dataset import Dataset, read_dataset, read_lists
from propensitybench.scenarios.model import Scenario, scenario_id
from propensitybench.scenarios.overlay import Overlay
from propensitybench.scenarios.selection import Selection, Task, tasks
from propensitybench.store import Manifest, StoppingRule, data_digest
from propensitybench.store.manifest import RUN_FORMAT, check_protocol, check_seed
from propensitybench.store.shards import Shard
from propensitybench.tabular import Brief
from propensitybench.taxonomy import DeclaredLists

Clock = Callable[[], datetime]
logger = logging.getLogger(__name__)


class RunSpec(Brief, msgspec.Struct, frozen=True):
    """A run as a user specifies it.

    Raises `BadInput` unless model and template are text, the template says what the policy prohibits, and the
    seed is an integer of at most 64 bits.

    Attributes:
        model: the model's address, e.g. ``simulated/never``.
        data: the data set's folder; None is the built-in data set.
        selection: which of its tasks to play.
        seed: random seed of the order of tasks and of everything random in them.
        protocol: the parameters of an episode.
        template: the system message's template, or the name of one of the package's.
        options: model options such as the temperature.
        stopping_rule: when to stop drawing tasks; None plays all selected tasks.
        overlays: changes to the texts, made in order.
        dialect: how requests are written, from `check_endpoint`; None is what is known of the endpoint.
        shard: which shard of the run to play; None plays the whole run.
        may_grow: whether a file that holds only some of the tasks gets the others; False where the sample was
            declared.
        client: the Python code that answers in the model's place, by name; not part of what the run is.
    """

    model: str
    data: Path | None = None
    selection: Selection = Selection()
    seed: int = 0
    protocol: Protocol = PAPER
    template: str = msgspec.field(default_factory=built_in_template)
    options: ModelOptions = ModelOptions()
    stopping_rule: StoppingRule | None = None
    overlays: tuple[Overlay, ...] = ()
    dialect: ChatDialect | None = None
    shard: Shard | None = None
    may_grow: bool = True
    client: str = ""

    def __post_init__(self) -> None:
        """Checks what would make a file that cannot be opened."""
        for name in ("model", "template"):
            if not isinstance(getattr(self, name), str):
                raise BadInput(f"{name}: must be text, found {getattr(self, name)!r}")
        msgspec.structs.force_setattr(self, "template", template_text(self.template))
        check_seed(self.seed)

    @property
    def settings(self) -> EpisodeSettings:
        """The settings shared by the run's episodes."""
        return EpisodeSettings(self.seed, self.protocol, self.overlaid_template)

    @property
    def overlaid_template(self) -> str:
        """The template, with the overlays' changes."""
        chosen = [overlay.template for overlay in self.overlays if overlay.template]
        template = built_in_template(chosen[-1]) if chosen else self.template
        for overlay in self.overlays:
            template = overlay.on_template(template)
        return template

    @property
    def stated_overlays(self) -> list[dict[str, str]]:
        """The overlays as a manifest states them."""
        return [{"factor": o.factor, "level": o.level, "digest": o.digest} for o in self.overlays]

    def check(self) -> None:
        """Checks the selection, the protocol and the shard.

        Raises:
            BadInput: one of them is invalid, or a shard has a stopping rule, or the lists that the data
                declare cannot be read.
        """
        self.selection.check(read_lists(self.data))
        check_protocol(self.protocol)
        if self.shard is not None:
            self.shard.check()
            if self.stopping_rule is not None:
                raise BadInput(
                    "a shard cannot have a stopping rule, which needs the outcomes of the whole run: leave "
                    "out --precision, or --shard"
                )


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def pick(spec: RunSpec) -> tuple[Dataset, list[Task]]:
    """The data set and the tasks of a run, in the order in which they are played.

    Raises:
        BadInput: no task is selected, or the settings or the data are invalid.
    """
    spec.check()
    dataset = _overlaid(read_dataset(spec.data, spec.selection.takes), spec.overlays)
    selection = msgspec.structs.replace(
        spec.selection, dimensions=spec.selection.dimensions or dataset.dimensions
    )
    chosen = list(tasks(dataset.scenarios, selection, spec.seed, spec.protocol.messages_played_alone))
    if not chosen:
        raise BadInput(
            f"no tasks selected: nothing in {dataset.source} passes all filters; relax one of them"
        )
    return dataset, chosen


def _overlaid(dataset: Dataset, overlays: Sequence[Overlay]) -> Dataset:
    for overlay in overlays:
        kept = [overlay.on_scenario(one) for one in dataset.scenarios if overlay.takes(one)]
        dataset = dataclasses.replace(dataset, scenarios=tuple(kept))
    return dataset


class Drawn(NamedTuple):
    """What a specification draws from its data.

    Attributes:
        scenarios: those of the tasks.
        pressure: the messages, by scenario and dimension.
        tasks: in the order in which they are played.
        source: where the data are from.
        lists: the names that the data declare.
    """

    scenarios: list[Scenario]
    pressure: dict[tuple[str, str], Chain]
    tasks: list[Task]
    source: str
    lists: DeclaredLists

    def manifest(self, spec: RunSpec, created: datetime) -> Manifest:
        """The manifest of the run of these tasks."""
        count = len(self.tasks)
        made = manifest_of(
            spec, self.scenarios, self.pressure, tasks=count, data=self.source, created=created
        )
        return msgspec.structs.replace(made, lists=self.lists)


def draw(spec: RunSpec) -> Drawn:
    """The tasks of a run with their texts; logs the warnings of the data.

    Raises:
        BadInput: no task is selected, or the data or the template is invalid.
    """
    dataset, chosen = pick(spec)
    for warning in dataset.warnings:
        logger.warning("%s", warning)
    used = {task.scenario for task in chosen}
    scenarios = [scenario for scenario in dataset.scenarios if scenario.name in used]
    for naming in spec.selection.namings:
        system_message(
            spec.overlaid_template, scenarios[0], naming
        )  # so that a broken template fails before the run starts
    pressure = pressure_of(dataset, chosen, spec)
    return Drawn(scenarios, pressure, chosen, dataset.source, dataset.declared)


def manifest_of(
    spec: RunSpec,
    scenarios: list[Scenario],
    pressure: Mapping[tuple[str, str], Chain],
    *,
    tasks: int,
    data: str,
    created: datetime,
) -> Manifest:
    """The manifest of a run of a number of tasks with texts from somewhere."""
    return Manifest(
        format=RUN_FORMAT,
        created=created.isoformat(timespec="seconds"),
        package=version("propensitybench"),
        rules=RULES_VERSION,
        model=spec.model,
        data=data,
        data_digest=data_digest(map(scenario_id, scenarios), pressure.values()),
        selections=(spec.selection,),
        seed=spec.seed,
        protocol=spec.protocol,
        template=spec.overlaid_template,
        tasks=tasks,
        options=msgspec.to_builtins(spec.options),
        stopping_rule=spec.stopping_rule,
        overlays=spec.stated_overlays,
        dialect=wire(spec, scenarios),
        client=spec.client,
    )


def wire(spec: RunSpec, scenarios: list[Scenario]) -> dict[str, Any]:
    """How requests are written, with the tools that look different on the wire, as a manifest has it."""
    dialect = spec.dialect or dialect_of(spec.model, spec.options.base_url)
    if dialect is None:
        return {}
    tools = [
        tool
        for scenario in scenarios
        for naming in spec.selection.namings
        for tool in Toolbox(scenario, naming, ask=spec.protocol.ask).specs
    ]
    recorded: dict[str, Any] = msgspec.to_builtins(with_tools(dialect, tools))
    return recorded


def pressure_of(dataset: Dataset, chosen: Iterable[Task], spec: RunSpec) -> dict[tuple[str, str], Chain]:
    """The pressure messages of some tasks of a run, by scenario and dimension.

    Raises:
        BadInput: no storyline suits a scenario.
    """
    by_name = {scenario.name: scenario for scenario in dataset.scenarios}
    pairs = sorted({(task.scenario, task.dimension) for task in chosen})
    return {
        (name, dimension): pressure_chain(
            by_name[name],
            dimension,
            dataset.storylines,
            spec.seed,
            spec.protocol.arm,
            spec.protocol.ladder,
        )
        for name, dimension in pairs
    }
