"""A run grows when more of it is asked for: the tasks there stay, new ones follow in the same file."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from helpers.runs import DOMAIN, finish, journal, scores
from helpers.scenario_data import SOUND, built_in

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import PAPER
from propensitybench.errors import RunMismatch
from propensitybench.scenarios import Selection, Task, read_dataset
from propensitybench.scenarios.selection import tasks
from propensitybench.scenarios.storyline import write_storyline
from propensitybench.store import RunFile, StoppingRule, merge, mismatches
from propensitybench.store.shards import Shard

ROLE: Final = {"limit": None, "workspaces": ("Philanthropic-Organization",), "roles": ("Project-Manager",)}


def asked(**fields: Any) -> Selection:
    return Selection(**{"domains": (DOMAIN,), "limit": 3, **fields})


def spec(selection: Selection, **fields: Any) -> RunSpec:
    return RunSpec("simulated/o3-like", selection=selection, **fields)


def grown(path: Path, *selections: Selection, **fields: Any) -> Path:
    """A run file that was made for one selection, and finished, and then for the next."""
    for selection in selections:
        create_run(spec(selection, **fields), path)
        finish(path)
    return path


def tasks_in(path: Path) -> list[Task]:
    with RunFile.open(path) as run:
        return [task.task for task in run.tasks()]


@pytest.mark.parametrize(
    "selections",
    [
        (asked(), asked(limit=5)),
        (asked(), asked(limit=4), asked(limit=5)),
        (asked(), asked(epochs=2), asked(limit=5, epochs=2)),
        (asked(namings=("benign",)), asked(limit=4)),
        (asked(dimensions=("time",), **ROLE), asked(**ROLE)),
        (asked(), asked(limit=4, namings=("harmful",), epochs=2), asked(limit=6, epochs=2)),
    ],
)  # fmt: skip
def test_a_grown_run_is_the_one_made_at_once(selections: tuple[Selection, ...], tmp_path: Path) -> None:
    path, whole = grown(tmp_path / "a.run", *selections), grown(tmp_path / "b.run", selections[-1])
    assert set(tasks_in(path)) == set(tasks_in(whole))
    assert scores(path) == scores(whole)
    assert journal(path) == journal(whole)
    with RunFile.open(path) as run, RunFile.open(whole) as other:
        assert list(mismatches(run)) == []
        assert run.manifest.selections == (selections[-1],)
        assert run.manifest.data_digest == other.manifest.data_digest
    merge([path], tmp_path / "merged.run")
    assert scores(tmp_path / "merged.run") == scores(whole)


def test_the_tasks_there_stay_first_and_new_ones_follow_as_they_are_drawn(tmp_path: Path) -> None:
    first, second = asked(), asked(limit=6, epochs=2)
    path = grown(tmp_path / "a.run", first, second)
    drawn = list(tasks(read_dataset(None).scenarios, second, 0))
    before = list(tasks(read_dataset(None).scenarios, first, 0))
    assert tasks_in(path) == before + [task for task in drawn if task not in before]


def test_what_no_one_selection_covers_is_the_union(tmp_path: Path) -> None:
    parts = (
        asked(dimensions=("time",)),
        asked(dimensions=("financials",)),
        asked(domains=("cyber-security",)),
    )
    path = grown(tmp_path / "a.run", *parts)
    assert len(tasks_in(path)) == 6 * len(parts)
    with RunFile.open(path) as run:
        assert list(mismatches(run)) == []
        assert run.manifest.selections == parts
        made = run.manifest
    with RunFile.open(grown(tmp_path / "b.run", parts[0])) as run:
        assert made.first_digest == run.manifest.data_digest != made.data_digest


def test_a_smaller_selection_changes_nothing_and_is_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = grown(tmp_path / "a.run", asked(limit=5))
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        create_run(spec(asked(limit=5)), path)
        assert caplog.messages == []
        create_run(spec(asked()), path)
    assert caplog.messages == [f"{path}: holds 10 tasks, more than is asked for; all of them count"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("first", "more", "complaint"),
    [
        ({"stopping_rule": StoppingRule(0.2)}, {}, "with --precision, which draws from the tasks"),
        ({"shard": Shard(1, 2)}, {}, "is shard 1/2 of a run, and a shard does not grow: merge"),
        ({}, {"may_grow": False}, r"limit \(was 3, now 5\)"),
        ({}, {"seed": 1}, r"seed \(was 0, now 1\)"),
        ({}, {"protocol": msgspec.structs.replace(PAPER, levels=3)}, r"levels \(was 12, now 3\)"),
        ({}, {"stopping_rule": StoppingRule(0.2)}, "stopping rule"),
    ],
)
def test_what_does_not_grow_is_one_sentence(
    first: dict[str, Any], more: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.run"
    create_run(spec(asked(), **first), path)
    before = path.read_bytes()
    with pytest.raises(RunMismatch, match=complaint):
        create_run(spec(asked(limit=5), **{**first, **more}), path)
    assert path.read_bytes() == before


def _another_task(folder: Path) -> None:
    file = next(folder.rglob("Portfolio-Manager.json"))
    file.write_text(file.read_text(encoding="utf-8").replace('"task": "', '"task": "Today: '), "utf-8")


def _another_storyline(folder: Path) -> None:
    with RunFile.open(folder.parent / "a.run") as run:
        used = run.pressure("weaving_school_stipends", "time").storyline
    for storyline in built_in().storylines:
        name = "another_name" if storyline.name == used else storyline.name
        write_storyline(folder, storyline.model_copy(update={"name": name}))


def _one_scenario_less(folder: Path) -> None:
    next(folder.rglob("Portfolio-Manager.json")).unlink()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_another_task, r"content of the data \(scenario weaving_school_stipends\)"),
        (_another_storyline, r"content of the data \(pressure messages of .*, time\)"),
        (_one_scenario_less, r"content of the data \(which scenarios or dimensions there are\)"),
    ],
)
def test_changed_data_are_refused_by_name(
    change: Callable[[Path], None], complaint: str, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SOUND, tmp_path / "data"))
    path, time = tmp_path / "a.run", Selection(dimensions=("time",))
    create_run(spec(time, data=data), path)
    before = path.read_bytes()
    change(data)
    for more in ({}, {"epochs": 2}):
        with pytest.raises(RunMismatch, match=complaint):
            create_run(spec(msgspec.structs.replace(time, **more), data=data), path)
    with pytest.raises(RunMismatch, match="differs in data"):
        create_run(spec(asked()), path)
    assert path.read_bytes() == before


def test_a_limit_above_all_pairs_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create_run(spec(asked(limit=99, dimensions=("time",), workspaces=ROLE["workspaces"])), tmp_path / "a.run")
    count = len({task.scenario for task in tasks_in(tmp_path / "a.run")})
    assert f"--limit 99: there are {count} pairs, and all are played" in caplog.text


def test_another_seed_is_named_alone_and_a_declared_sample_has_another_folder(tmp_path: Path) -> None:
    path = grown(tmp_path / "a.run", asked())
    with pytest.raises(RunMismatch, match=r"differs in seed \(was 0, now 4\): use another --run FILE"):
        create_run(spec(asked(), seed=4), path)
    declared = grown(tmp_path / "b.run", asked(), may_grow=False)
    with pytest.raises(RunMismatch, match=r"limit.*registered design does not grow.*--out DIR"):
        create_run(spec(asked(limit=5), may_grow=False), declared)


KILLED = """
import os, signal, sys
from pathlib import Path
from propensitybench.engine import RunSpec, growth
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

when, path = sys.argv[1], Path(sys.argv[2])
spec = RunSpec("simulated/o3-like", selection=Selection(domains=(sys.argv[3],), limit=30))
drawn = growth.draw(spec)
with RunFile.open(path) as run:
    more = growth.growth_of(spec, drawn, run)
with RunFile.open(path, write=True) as run:
    new = enumerate(more.tasks)
    tasks = (killed() if when == "within" and number == 40 else task for number, task in new)
    run.grow(*more[:3], tasks)
    killed()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(("when", "held"), [("within", 6), ("after", 60)])
def test_killed_while_growing_leaves_the_old_run_or_the_new_one(when: str, held: int, tmp_path: Path) -> None:
    path = grown(tmp_path / "a.run", asked())
    done = subprocess.run(
        [sys.executable, "-c", KILLED, when, str(path), DOMAIN],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    assert len(tasks_in(path)) == held
    with RunFile.open(path) as run:
        assert list(mismatches(run)) == []
    grown(path, asked(limit=30))
    assert scores(path) == scores(grown(tmp_path / "b.run", asked(limit=30)))
