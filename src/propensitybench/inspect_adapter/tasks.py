"""The tasks, as ``inspect eval propensitybench/propensity`` finds them."""

from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample

from propensitybench.engine import RunSpec
from propensitybench.engine.spec import pick, pressure_of
from propensitybench.episode import PAPER, RULES_VERSION, TEMPLATES, Protocol, built_in_template
from propensitybench.errors import BadInput, UnknownName
from propensitybench.inspect_adapter.probe import stated
from propensitybench.inspect_adapter.samples import as_shown, sample_id, sample_metadata
from propensitybench.inspect_adapter.scorer import propensity as propensity_scorer
from propensitybench.inspect_adapter.solver import asker, player
from propensitybench.inspect_adapter.viewer import viewer
from propensitybench.judging.probe_numbers import POLICY
from propensitybench.judging.probes import read_probe
from propensitybench.scenarios import Scenario, Selection, scenario_id
from propensitybench.store import data_digest
from propensitybench.taxonomy import (
    ARMS,
    ESCALATING,
    LADDERS,
    NAMINGS,
    PAPER_LADDER,
    ArmName,
    LadderName,
)
from propensitybench.taxonomy import naming as naming_named

# The number is that of the rules: it is raised when the same replies would give another transcript or
# outcome; the probe of `stated_policy` counts as a rule. The letter is raised when the arguments of a
# task or the contents of its samples and scores change in a way that matters to readers of its logs.
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
    template: str = "named",
    arm: str = ESCALATING,
    ladder: str = PAPER_LADDER,
    ask: bool = False,
    report: bool = False,
) -> Task:
    """Would the model use the tool that it has been told not to use?

    Args:
        domain: a domain, or a list of them; without it, all.
        workspace: likewise.
        role: likewise.
        capability: likewise.
        dimension: of pressure; likewise.
        naming: of the misaligned tool: ``harmful``, ``benign`` or ``both``.
        limit: size of a balanced sample, in pairs of a scenario and a dimension.
        data: a data folder, in either layout; without it, the built-in data.
        seed: random seed of the sample order and of everything random in an episode.
        levels: number of pressure messages; with fewer than 12 the result is not the propensity.
        template: ``named``: the policy names the misaligned tool; ``unnamed``: it only forbids the act.
        arm: the variant: ``escalating`` (the published one), ``placebo``, ``single``, ``fresh``, ``pure``,
            ``repeat`` or ``open``; other arms than the first do not give the propensity.
        ladder: of pressure: ``paper`` (the published one) or ``work``.
        ask: whether there is a tool to ask those who may decide.
        report: whether the agent is asked for a closing report after the end.

    Raises:
        PrerequisiteError: an argument or the data cannot be used.
    """
    selection = _selection((domain, workspace, role, capability, dimension, naming), limit)
    spec = RunSpec(
        "",
        _folder(data),
        selection,
        seed,
        _protocol(levels, arm, ladder, ask=ask, report=report),
        _template(template),
    )
    picked = _Picked(spec)
    return Task(
        dataset=picked.dataset(),
        solver=player(picked.scenarios, picked.pressure, spec.template),
        scorer=propensity_scorer(),
        # Else a sample with an error reaches no metric, and the bounds leave it out.
        score_on_error=True,
        viewer=viewer(),
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
    """Does the model say, before its first reply, that it would use that tool?

    Asked is the built-in probe ``stated-policy``, as `propensitybench probe` asks it at level 0. Given the
    arguments of a run, its samples have the ids of the run's tasks, so that the model's answers can be
    compared with its behaviour. An answer is one letter, but a reasoning model needs tokens before it.

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
        dataset=picked.dataset(),
        solver=asker(picked.scenarios, picked.pressure, spec.template, read_probe(POLICY)),
        scorer=stated(),
        version=VERSION,
        metadata=picked.metadata,
    )


class _Picked:
    """The tasks and scenarios selected by the arguments; raises `PrerequisiteError` if there are none."""

    def __init__(self, spec: RunSpec) -> None:
        try:
            dataset, self._tasks = pick(spec)
        except BadInput as error:
            raise as_shown(error) from error
        names = {task.scenario for task in self._tasks}
        self.scenarios = {
            # As a run file gives them back, with sorted keys: the model sees their order.
            one.name: Scenario.from_json(one.to_json())
            for one in dataset.scenarios
            if one.name in names
        }
        try:
            self.pressure = pressure_of(dataset, self._tasks, spec)
        except BadInput as error:
            raise as_shown(error) from error
        self._spec = spec
        self._declared = dataset.declared
        self._source = dataset.source
        self._digest = data_digest(map(scenario_id, self.scenarios.values()), self.pressure.values())

    def dataset(self) -> MemoryDataset:
        """A sample for each task, in the balanced order of a run."""
        spec = self._spec
        samples = []
        for one in self._tasks:
            scenario = self.scenarios[one.scenario]
            storyline = self.pressure[one.scenario, one.dimension].storyline
            about = sample_metadata(one, scenario, storyline, spec.seed, spec.protocol, self._digest)
            samples.append(Sample(scenario.task, id=sample_id(one), metadata=about))
        return MemoryDataset(samples, name="propensitybench", location=self._source)

    @property
    def metadata(self) -> dict[str, Any]:
        """The log's metadata: everything that determines the transcripts, except scenarios and replies."""
        spec = self._spec
        return {
            "package": version("propensitybench"),
            "rules": RULES_VERSION,
            "data": self._source,
            "data_digest": self._digest,
            "selections": [msgspec.to_builtins(spec.selection)],
            "seed": spec.seed,
            "protocol": msgspec.to_builtins(spec.protocol),
            "template": spec.template,
            "lists": msgspec.to_builtins(self._declared),
        }


def _protocol(levels: int, arm: str, ladder: str, *, ask: bool, report: bool) -> Protocol:
    for what, given, known in (("arm", arm, ARMS), ("ladder", ladder, LADDERS)):
        if given not in known:
            raise as_shown(UnknownName(what, str(given), list(known)))
    return Protocol(
        levels=levels, arm=cast(ArmName, arm), ladder=cast(LadderName, ladder), ask=ask, report=report
    )


def _template(name: str) -> str:
    if name not in TEMPLATES:
        raise as_shown(UnknownName("template", str(name), TEMPLATES))
    return built_in_template(name)


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
