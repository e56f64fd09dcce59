"""A run of another model on tasks that a run file holds: the same texts, in the same order."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from propensitybench.digests import digest
from propensitybench.engine.spec import Clock, RunSpec, manifest_of, now
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.scenarios import Selection
from propensitybench.scenarios.selection import Task
from propensitybench.store import GateRule, Manifest, RunFile, differences
from propensitybench.taxonomy import Naming


def identity_of(manifest: Manifest) -> str:
    """Identifies a run by its manifest."""
    return digest(msgspec.json.encode(manifest, order="sorted"))


def begun_tasks(run: RunFile, namings: Sequence[Naming]) -> list[Task]:
    """The tasks under some namings that have begun, in the order of the run."""
    begun = {record.metadata.task for record in run.records()}
    begun |= {task.task.key for task in run.in_progress()}
    return [task.task for task in run.tasks() if task.task.naming in namings and task.task.key in begun]


def create_same_tasks(
    spec: RunSpec,
    base: Path,
    rule: GateRule,
    path: Path,
    *,
    clock: Clock = now,
) -> None:
    """Creates the run file of a candidate, unless it exists already.

    Everything but the model comes from the base's run file, so that it does not matter whether its data set
    has changed since.

    Args:
        spec: the candidate; of its selection, only the namings are read.
        base: the base's run file.
        rule: decides how many tasks are drawn; the last look is at all of them.
        path: the run file.
        clock: returns the creation time.

    Raises:
        BadInput: a file cannot be used.
        RunMismatch: the file holds another run; the message lists the differences.
    """
    namings = spec.selection.namings
    if path.exists():
        _check_same(path, spec, rule)
        return
    with RunFile.open(base) as source:
        was = source.manifest
        chosen = begun_tasks(source, namings)[: rule.looks[-1]]
        if len(chosen) < rule.looks[-1]:
            raise BadInput(
                f"{base}: has {len(chosen)} tasks to play, and the last look is at {rule.looks[-1]}"
            )
        scenarios = [source.scenario(name) for name in dict.fromkeys(task.scenario for task in chosen)]
        pairs = sorted({(task.scenario, task.dimension) for task in chosen})
        pressure = {pair: source.pressure(*pair) for pair in pairs}
    spec = msgspec.structs.replace(
        spec, selection=_selection(was.selection, namings), seed=was.seed, protocol=was.protocol,
        template=was.template,
    )  # fmt: skip
    manifest = manifest_of(spec, scenarios, pressure, tasks=len(chosen), data=was.data, created=clock())
    manifest = msgspec.structs.replace(manifest, overlays=was.overlays, gate=rule)
    rows = [(*pair, chain) for pair, chain in pressure.items()]
    RunFile.create(path, manifest, scenarios, rows, chosen)


def _selection(was: Selection, namings: Sequence[Naming]) -> Selection:
    return msgspec.structs.replace(was, namings=tuple(namings))


def _check_same(path: Path, spec: RunSpec, rule: GateRule) -> None:
    """Raises `RunMismatch` if a file holds another candidate, or was begun under another rule."""
    with RunFile.open(path) as run:
        held = run.manifest
    selection = _selection(held.selection, spec.selection.namings)
    options = msgspec.to_builtins(spec.options)
    wanted = msgspec.structs.replace(held, model=spec.model, options=options, selection=selection, gate=rule)
    if changed := differences(held, wanted):
        raise RunMismatch(
            f"{path}: holds another run; it differs in {'; '.join(changed)}: give another file, or the "
            "settings it was made with"
        )
