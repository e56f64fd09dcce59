"""What reads the logs of Inspect: entry points, so that nothing here imports Inspect."""

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Literal, cast

from propensitybench.errors import BadInput
from propensitybench.metrics.scores import Scorable
from propensitybench.metrics.stated import Answer

# The entry points: `eval` reads runs, `stated` what models said of the tasks of runs.
READERS: Final = "propensitybench.run_readers"
Answers = Mapping[tuple[str, int], Answer]


def log_reader(name: Literal["eval", "stated"]) -> Any:
    """The function of an entry point; raises `BadInput` without the extra ``inspect``."""
    (entry,) = entry_points(group=READERS, name=name)
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error


def read_stated(logs: Sequence[Path], runs: Sequence[Scorable]) -> list[Answers | None]:
    """What each run's model said of its tasks, from logs of the Inspect task ``stated_policy``.

    Returns:
        For each run the answers by the task's key without its epoch, and the epoch; None for a run whose
        model no log asked.

    Raises:
        BadInput: a log cannot be read, is of another task, or asked a model that none of the runs is of; or
            Inspect is not installed.
    """
    return cast(list[Answers | None], log_reader("stated")(logs, runs)) if logs else [None for _ in runs]


def needs_inspect(error: ModuleNotFoundError) -> BadInput:
    """The error for a user without the extra ``inspect``."""
    return BadInput(
        f"Inspect logs: need Inspect AI, which is not installed ({error.name}); "
        "type: pip install 'propensitybench[inspect]'"
    )
