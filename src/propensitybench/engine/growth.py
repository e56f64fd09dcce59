"""Making the run file of a run, and extending it when more of the same run is asked for."""

import logging
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from propensitybench.engine.agents import recorded_dialect
from propensitybench.engine.spec import Clock, Drawn, RunSpec, draw, now, wire
from propensitybench.episode import Outcome
from propensitybench.errors import RunMismatch
from propensitybench.files import file_name
from propensitybench.pressure import Chain
from propensitybench.scenarios import Scenario, Task
from propensitybench.scenarios.model import scenario_id
from propensitybench.scenarios.selection import task_of
from propensitybench.store import Manifest, RunFile, Shard, data_digest, differences
from propensitybench.taxonomy import joined_lists

logger = logging.getLogger(__name__)


class Growth(NamedTuple):
    """What a run file is to get, see `RunFile.grow`."""

    manifest: Manifest
    scenarios: list[Scenario]
    pressure: list[tuple[str, str, Chain]]
    tasks: list[Task]


def create_run(spec: RunSpec, path: Path, *, clock: Clock = now) -> bool:
    """Creates the run file of a run; one that exists gets the tasks that it does not have yet.

    Args:
        spec: the run.
        path: the run file.
        clock: returns the creation time.

    Returns:
        Whether there is something to play: False if all that is asked for is finished, whatever else the file
        holds.

    Raises:
        BadInput: no task is selected, or the data or the template is invalid.
        RunMismatch: the file holds another run, or one that cannot grow; the message says why.
    """
    drawn = draw(spec)
    pairs, most = len(drawn.pressure), spec.selection.limit or 0
    if most > pairs:
        logger.warning("--limit %s: there are %s pairs, and all are played", f"{most:,}", f"{pairs:,}")
    if not path.exists():
        rows = ((*pair, chain) for pair, chain in drawn.pressure.items())
        manifest = drawn.manifest(spec, clock())
        RunFile.create(path, manifest, drawn.scenarios, rows, drawn.tasks, spec.shard)
        return True
    with RunFile.open(path) as run:
        growth = growth_of(spec, drawn, run)
        is_part = growth is None and run.manifest.tasks > len(drawn.tasks)
        unfinished = set(drawn.tasks) - _finished(run) if is_part else set(drawn.tasks)
    if growth is not None:
        with RunFile.open(path, write=True) as run:
            logger.warning(
                "%s: %s tasks are added to its %s",
                file_name(path),
                f"{len(growth.tasks):,}",
                f"{run.manifest.tasks:,}",
            )
            run.grow(*growth)
    return bool(unfinished)


def _finished(run: RunFile) -> set[Task]:
    return {task_of(one.metadata) for one in run.records() if one.stats.outcome is not Outcome.ERRORED}


def growth_of(spec: RunSpec, drawn: Drawn, run: RunFile) -> Growth | None:
    """What the file of a run lacks of what is asked for; None if that is nothing.

    A file that holds more keeps it, with a note in the log.

    Raises:
        RunMismatch: as `create_run` does.
    """
    name = file_name(run.path)
    if run.manifest.gate is not None:
        raise RunMismatch(
            f"{name}: is the candidate of a gate, which decides how many tasks it plays: continue with "
            "`propensitybench gate`, or use another --run FILE"
        )
    asked, held = drawn.manifest(spec, now()), run.manifest
    there = {task.task for task in run.tasks()}
    new = [task for task in drawn.tasks if task not in there]
    changed = differences(held, asked)
    if changed and spec.may_grow:
        alike = {field: getattr(held, field) for field in ("selections", "tasks", "data_digest")}
        changed = differences(held, msgspec.structs.replace(asked, **alike))
        changed += _changed_data(spec, drawn, run, there)
    if changed:
        instead = (
            "use another --run FILE, or the settings it was made with"
            if spec.may_grow
            else "the sample of a registered design does not grow; give another folder, --out DIR"
        )
        raise RunMismatch(f"{name}: holds another run; it differs in {'; '.join(changed)}: {instead}")
    if run.shard != spec.shard:
        raise RunMismatch(
            f"{name}: holds {_part(run.shard)}, not {_part(spec.shard)}: use another --run FILE, or resume "
            "it with `propensitybench resume`"
        )
    if new:
        _check_growing(run)
        return _growth(spec, drawn, run, new)
    if len(there) > len(drawn.tasks):
        logger.warning(
            "%s: holds %s tasks, more than is asked for; all of them count", name, f"{len(there):,}"
        )
    return None


def _part(shard: Shard | None) -> str:
    return "the whole run" if shard is None else f"shard {shard} of the run"


def _changed_data(spec: RunSpec, drawn: Drawn, run: RunFile, there: Set[Task]) -> Iterator[str]:
    """How the data differ from those that the file was made from, in words."""
    ids, held, asked = run.scenario_ids(), run.manifest, spec.selection
    shared = [scenario for scenario in drawn.scenarios if scenario.name in ids]
    if not shared and held.data != drawn.source:
        yield f"data (was {held.data!r}, now {drawn.source!r})"
    for scenario in shared:
        if ids[scenario.name] != scenario_id(scenario):
            yield f"content of the data (scenario {scenario.name})"
            return
    pairs = {(task.scenario, task.dimension) for task in there}
    for pair in sorted(pairs & drawn.pressure.keys()):
        if run.pressure(*pair) != drawn.pressure[pair]:
            yield f"content of the data (pressure messages of {pair[0]}, {pair[1]})"
            return
    if held.seed != spec.seed:  # which draws other tasks
        return
    chosen = set(drawn.tasks)
    held_again = all(asked.covers(one) for one in held.selections) and not there <= chosen
    if held_again or (not chosen <= there and any(one.covers(asked) for one in held.selections)):
        yield "content of the data (which scenarios or dimensions there are)"


def _check_growing(run: RunFile) -> None:
    """Raises `RunMismatch` for a file whose tasks were fixed when it was made."""
    name = file_name(run.path)
    if run.shard is not None:
        raise RunMismatch(
            f"{name}: is shard {run.shard} of a run, and a shard does not grow: merge the shards and extend "
            "the merged file, or use another --run FILE"
        )
    if run.manifest.stopping_rule is not None:
        raise RunMismatch(
            f"{name}: is a run with --precision, which draws from the tasks that it began with and does not "
            "grow: use another --run FILE"
        )


def _growth(spec: RunSpec, drawn: Drawn, run: RunFile, new: list[Task]) -> Growth:
    held, ids = run.manifest, run.scenario_ids()
    pairs = {(task.scenario, task.dimension) for task in (one.task for one in run.tasks())}
    scenarios = [scenario for scenario in drawn.scenarios if scenario.name not in ids]
    pressure = [(*pair, chain) for pair, chain in drawn.pressure.items() if pair not in pairs]
    chains = [run.pressure(*pair) for pair in sorted(pairs)] + [chain for _, _, chain in pressure]
    kept = tuple(one for one in held.selections if not spec.selection.covers(one))
    manifest = msgspec.structs.replace(
        held,
        selections=(*kept, spec.selection),
        tasks=held.tasks + len(new),
        data_digest=data_digest([*ids.values(), *map(scenario_id, scenarios)], chains),
        dialect=_dialect(spec, drawn, held),
        lists=joined_lists(held.lists, drawn.lists),
        grown_from=held.first_digest,
    )
    return Growth(manifest, scenarios, pressure, new)


def _dialect(spec: RunSpec, drawn: Drawn, held: Manifest) -> dict[str, Any]:
    """How requests are written, with the tools of old and new tasks that look different on the wire."""
    if not held.dialect:
        return held.dialect
    was = recorded_dialect(held.dialect)
    new = wire(msgspec.structs.replace(spec, dialect=was), drawn.scenarios)
    short = sorted({**was.short_names, **new["short_names"]}.items())
    split = sorted({*was.split_descriptions, *new["split_descriptions"]})
    return {**new, "short_names": dict(short), "split_descriptions": split}
