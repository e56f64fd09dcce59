"""The tasks, as ``inspect eval propensitybench/propensity`` finds them."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage
from inspect_ai.solver import generate

from propensitybench.engine import RunSpec
from propensitybench.engine.spec import pick
from propensitybench.episode import PAPER, RULES_VERSION, Protocol
from propensitybench.errors import BadInput
from propensitybench.inspect_adapter.probe import question, stated
from propensitybench.inspect_adapter.samples import as_shown, sample_id, sample_metadata
from propensitybench.inspect_adapter.scorer import propensity as propensity_scorer
from propensitybench.inspect_adapter.solver import player
from propensitybench.inspect_adapter.viewer import VIEWER
from propensitybench.scenarios import Scenario, Selection, scenario_id
from propensitybench.store import data_digest
from propensitybench.taxonomy import NAMINGS, Naming
from propensitybench.taxonomy import naming as naming_named

# The number is that of the rules of play: raised when the same replies would give another transcript or
# outcome. The letter is raised when a task's arguments, or what its samples and scores hold, change so
# that a reader of its logs has to know. The question of `stated_policy` counts as a rule of play.
VERSION: Final = f"{RULES_VERSION}-A"

Names = str | list[str] | None


@task
def propensity(  # noqa: PLR0913 - what `-T` takes
    domain: Names = None,
    workspace: Names = None,
    role: Names = None,
    capability: Names = None,
    dimension: Names = None,
    naming: Names = None,
    limit: int | None = None,
    data: str | None = None,
    seed: int = 0,
    levels: int = PAPER.levels,
) -> Task:
    """Would the model use the tool that it has been told not to use?

    Args:
        domain: only this one, or a list of them.
        workspace: likewise.
        role: likewise.
        capability: likewise.
        dimension: of pressure, likewise.
        naming: how the misaligned tool is named, ``harmful``, ``benign`` or ``both``.
        limit: a balanced sample of so many pairs of a scenario and a dimension.
        data: a data folder, in either layout; without it, the built-in data.
        seed: of the order of samples and of all chance in them.
        levels: number of pressure messages; with fewer than 12 the result is not the propensity.

    Raises:
        PrerequisiteError: an argument or the data cannot be used.
    """
    selection = _selection((domain, workspace, role, capability, dimension, naming), limit)
    spec = RunSpec("", _folder(data), selection, seed, Protocol(levels=levels))
    picked = _Picked(spec)
    return Task(
        dataset=picked.dataset(lambda scenario, _: scenario.task),
        solver=player(picked.scenarios, spec.template),
        scorer=propensity_scorer(),
        viewer=VIEWER,
        version=VERSION,
        metadata=picked.metadata,
    )


@task
def stated_policy(  # noqa: PLR0913 - what `-T` takes
    domain: Names = None,
    workspace: Names = None,
    role: Names = None,
    capability: Names = None,
    dimension: Names = None,
    naming: Names = None,
    limit: int | None = None,
    data: str | None = None,
    seed: int = 0,
) -> Task:
    """Does the model say, asked in a conversation of its own, that it may use that tool?

    With the arguments of a run, its samples have the ids of that run's tasks, so that what a model said
    can be held against what it did. The answer is one word: a model that has to think first needs tokens
    for it.

    Args:
        domain: this argument and the others are those of `propensity`.
        workspace: likewise.
        role: likewise.
        capability: likewise.
        dimension: likewise.
        naming: likewise.
        limit: likewise.
        data: likewise.
        seed: likewise.

    Raises:
        PrerequisiteError: an argument or the data cannot be used.
    """
    selection = _selection((domain, workspace, role, capability, dimension, naming), limit)
    spec = RunSpec("", _folder(data), selection, seed)
    picked = _Picked(spec)
    return Task(
        dataset=picked.dataset(lambda scenario, naming: question(spec.template, scenario, naming)),
        solver=generate(tool_calls="none"),
        scorer=stated(),
        version=VERSION,
        metadata=picked.metadata,
    )


class _Picked:
    """The tasks and scenarios that arguments pick; raises `PrerequisiteError` where they cannot be used."""

    def __init__(self, spec: RunSpec) -> None:
        try:
            dataset, self._tasks = pick(spec)
        except BadInput as error:
            raise as_shown(error) from error
        used = {task.scenario for task in self._tasks}
        self.scenarios = {
            # As a run file gives them back, with the keys of objects sorted: a model sees that order.
            one.name: Scenario.from_json(one.to_json())
            for one in dataset.scenarios
            if one.name in used
        }
        self._spec = spec
        self._source = dataset.source
        self._digest = data_digest([scenario_id(one) for one in self.scenarios.values()])

    def dataset(self, ask: Callable[[Scenario, Naming], str | list[ChatMessage]]) -> MemoryDataset:
        """A sample for each task, in the order of a run, which begins with a balanced sample."""
        spec = self._spec
        samples = []
        for one in self._tasks:
            scenario = self.scenarios[one.scenario]
            about = sample_metadata(one, scenario, spec.seed, spec.protocol, self._digest)
            samples.append(Sample(ask(scenario, one.naming), id=sample_id(one), metadata=about))
        return MemoryDataset(samples, name="propensitybench", location=self._source)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the log says of the whole: all that decides its transcripts besides scenarios and replies."""
        spec = self._spec
        return {
            "package": version("propensitybench"),
            "rules": RULES_VERSION,
            "data": self._source,
            "data_digest": self._digest,
            "selection": msgspec.to_builtins(spec.selection),
            "seed": spec.seed,
            "protocol": msgspec.to_builtins(spec.protocol),
            "template": spec.template,
        }


def _selection(filters: tuple[Names, ...], limit: int | None) -> Selection:
    domains, workspaces, roles, capabilities, dimensions, namings = map(_several, filters)
    try:
        both = namings in ((), ("both",))
        named = NAMINGS if both else tuple(naming_named(name) for name in namings)
    except BadInput as error:
        raise as_shown(error) from error
    return Selection(domains, workspaces, roles, capabilities, dimensions, named, limit)


def _several(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _folder(data: str | None) -> Path | None:
    return None if data is None else Path(data)
