"""Small runs for tests, created and executed through the public interface."""

from pathlib import Path
from typing import Final

from helpers.clients import at

from propensitybench.clients import Client, ScriptedClient, calls, says
from propensitybench.engine import Result, RunSpec, create_run, run_tasks
from propensitybench.metrics import RunRecords, ScoredRun, score_run
from propensitybench.scenarios import Selection
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

DOMAIN: Final = "self-proliferation"


def make(path: Path, model: str = "simulated/o3-like", limit: int | None = 6, seed: int = 0) -> Path:
    """Makes a run file of built-in tasks of one domain."""
    create_run(RunSpec(model, selection=Selection(domains=(DOMAIN,), limit=limit), seed=seed), path)
    return path


def client_of(model: str) -> Client:
    """The simulated client of that address."""
    return SimulatedClient(model.removeprefix("simulated/"))


def finish(path: Path, client: Client | None = None, concurrency: int = 8) -> Result:
    """Plays the unfinished tasks of a run file."""
    with RunFile.open(path, write=True) as run:
        return run_tasks(run, client or client_of(run.manifest.model), at(concurrency))


def scores(path: Path) -> ScoredRun:
    """The scores of a run file, under a name that does not depend on its path."""
    with RunFile.open(path) as run:
        return score_run(RunRecords("run", run.manifest.model, run.manifest.tasks, list(run.records())))


def journal(path: Path) -> set[tuple[str, int]]:
    """Every journaled reply, by its task's key and its turn."""
    with RunFile.open(path) as run:
        return {
            (task.task.key, turn) for task in run.tasks() for turn in range(len(run.replies(task.number)))
        }


def scripted(*, done: bool = True, model: str = "simulated/o3-like") -> ScriptedClient:
    """A client that gives the same reply in every episode."""
    return ScriptedClient([says("no", done=True)] if done else [calls("nothing")], model)
