"""Metrics that users write: functions of the table of episodes."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from math import isfinite
from numbers import Real
from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propensitybench.clients.function import described
from propensitybench.errors import BadInput
from propensitybench.metrics.measures import MEASURES, NAMING_SENSITIVITY
from propensitybench.metrics.own import OwnMetric

if TYPE_CHECKING:
    import polars as pl

METRICS: Final = "propensitybench.metrics"
"""The group of entry points in which a package registers its metrics."""
MetricFunction = Callable[["pl.DataFrame"], Iterable[Any]]
MAX_SHOWN_VALUE: Final = 60
# Where Python's own code and this package are.
_LIBRARIES: Final = (get_path("stdlib"), str(Path(__file__).parents[1]))
_Named = Mapping[str, MetricFunction]


@cache
def registered_metrics() -> _Named:
    """The metrics of installed packages, by name; raises `BadInput` for one that cannot be imported."""
    found: dict[str, MetricFunction] = {}
    for entry in sorted(entry_points(group=METRICS), key=lambda entry: entry.name):
        try:
            function = entry.load()
        except Exception as error:  # whatever a package of somebody else raises
            raise BadInput(
                f"metric {entry.name!r} ({entry.value}): cannot be imported ({_raised(error)})"
            ) from error
        _add(found, entry.name, function)
    return found


def metrics_named(functions: MetricFunction | Iterable[MetricFunction], taken: _Named) -> _Named:
    """Functions by their names; raises `BadInput` for what is no function, or a name that is taken."""
    if callable(functions):
        functions = [functions]
    if not isinstance(functions, Iterable):
        raise BadInput(f"metrics: {functions!r} is not a function with a name (def NAME(episodes): ...)")
    found = dict(taken)
    for function in functions:
        _add(found, getattr(function, "__name__", ""), function)
    return {name: function for name, function in found.items() if name not in taken}


def _add(found: dict[str, MetricFunction], name: str, function: Any) -> None:
    if not callable(function) or not name.isidentifier():
        raise BadInput(f"metrics: {function!r} is not a function with a name (def NAME(episodes): ...)")
    if name in found or name in MEASURES or name == NAMING_SENSITIVITY.name:
        raise BadInput(f"metric {name!r}: there is one of that name already; call it something else")
    found[name] = function


def measure_episodes(functions: _Named, episodes: "pl.DataFrame") -> tuple[OwnMetric, ...]:
    """The metrics of a run.

    Args:
        functions: by name.
        episodes: the run's scored episodes; others have no outcome that a metric could take for a safe one.

    Raises:
        BadInput: a metric raises, or does not return a number or None for each episode.
    """
    tasks: list[str] = episodes["task"].to_list() if len(episodes) else []
    return tuple(_measured(name, function, episodes, tasks) for name, function in functions.items())


def _measured(
    name: str, function: MetricFunction, episodes: "pl.DataFrame", tasks: Sequence[str]
) -> OwnMetric:
    try:
        given = function(episodes) if tasks else []
        if isinstance(given, Real):
            raise BadInput(
                f"metric {name!r}: {described(function)} returned one number; return one value for each row"
            )
        found = list(given)
    except BadInput:
        raise
    except Exception as error:  # whatever a function of somebody else raises
        raise BadInput(f"metric {name!r}: {_raised(error)}") from error
    if len(found) != len(tasks):
        raise BadInput(
            f"metric {name!r}: returned {len(found)} values for {len(tasks)} episodes; return one for each "
            "row, None where there is none"
        )
    values = {
        task: _number(name, task, value)
        for task, value in zip(tasks, found, strict=True)
        if value is not None
    }
    is_share = bool(values) and all(
        isinstance(value, bool | np.bool_) for value in found if value is not None
    )
    return OwnMetric(
        name=name,
        label=name.replace("_", " "),
        definition=_first_line(function) or "a metric of your own",
        unit="proportion" if is_share else "per task",
        values=values,
    )


def _number(name: str, task: str, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, str | bytes) else None
    except (TypeError, ValueError):
        number = None
    if number is None or not isfinite(number):
        shown = repr(value)[:MAX_SHOWN_VALUE]
        raise BadInput(
            f"metric {name!r}: returned {shown} for {task}; return a number, a Boolean, or None where there "
            "is none"
        )
    return number


def _first_line(function: MetricFunction) -> str:
    text = (inspect.getdoc(function) or "").strip().partition("\n")[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen")) or "site-packages" in Path(file).parts


def _raised(error: Exception) -> str:
    """What was raised, and the last place of it that is not in a library."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in every if not _is_library(frame.filename)] or every
    place = f", at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{place}" if text else f"{type(error).__name__}{place}"
