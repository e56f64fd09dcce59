"""Settings of runs in a file: what a command would be told, in TOML."""

import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import MIB, file_name, read_text
from propensitybench.runs.resolve import checked
from propensitybench.runs.settings import SETTINGS, Settings, must_be

# Beside the settings, each of which has its own name.
MODEL: Final = "model"
RUN: Final = "run"


class RunConfig(NamedTuple):
    """What a file of settings says.

    Attributes:
        models: the models, each with a run of its own.
        run: the run file; None gives each run a name.
        settings: the settings of all runs.
    """

    models: tuple[str, ...] = ()
    run: Path | None = None
    settings: Settings = Settings()


def read_config(path: Path) -> RunConfig:
    """Reads a file of settings; paths in it are relative to the current folder, as on the command line.

    Raises:
        BadInput: the file cannot be read, or has a key or a value that cannot be used.
    """
    name = file_name(path)
    try:
        found = tomllib.loads(read_text(path, f"--config {name}", MIB))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"--config {name}: is not TOML ({error})") from error
    for key in found:
        if key not in (MODEL, RUN, *SETTINGS):
            raise UnknownName("setting", key, (MODEL, RUN, *SETTINGS), f"--config {name}")
    models, run = found.pop(MODEL, ()), found.pop(RUN, None)
    models = (models,) if isinstance(models, str) else models
    if not isinstance(models, list | tuple) or not all(isinstance(one, str) for one in models):
        raise BadInput(f"--config {name}: {MODEL}: must be text or a list of texts")
    if not isinstance(run, str | None):
        raise BadInput(f"--config {name}: {RUN}: must be the name of a file")
    try:
        settings = checked({key: _value(key, value) for key, value in found.items()})
    except BadInput as error:
        raise BadInput(f"--config {name}: {error}") from error
    return RunConfig(tuple(models), None if run is None else Path(run), settings)


def _value(name: str, value: Any) -> Any:
    """A value as its option would make it of text."""
    typed = SETTINGS[name].typed
    if typed is None or not isinstance(value, str):
        return value
    try:
        return typed(value)
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"{name}: must be {must_be(name)}, found {value}") from error
