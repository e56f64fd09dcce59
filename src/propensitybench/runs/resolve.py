"""What the settings of a run make: what the run is, and how it is executed."""

import os
import re
from collections.abc import Collection, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from propensitybench.chat import is_deeper_than
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.digests import digest
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price, RunSpec
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import file_name
from propensitybench.runs.settings import (
    KEPT,
    MAX_NESTED,
    SETTINGS,
    TYPES,
    Settings,
    field_default,
    must_be,
)
from propensitybench.scenarios import Selection
from propensitybench.simulated import PREFIX
from propensitybench.store import ExecutionSetting, RunFile, StoppingRule
from propensitybench.store.shards import read_shard
from propensitybench.taxonomy import NAMINGS, naming

# Of a value in a message.
MAX_SHOWN: Final = 80
FOLDER: Final = Path("propensitybench-runs")
T = TypeVar("T", bound=msgspec.Struct)


class RunSettings(NamedTuple):
    """What a run is, and how it is executed."""

    spec: RunSpec
    execution: ExecutionOptions


def read_settings(model: str, settings: Settings) -> RunSettings:
    """The settings of a run, checked; a missing setting has the default of the command line.

    Raises:
        BadInput: a setting does not exist, or has the wrong type or an impossible value.
    """
    return RunSettings(read_spec(model, settings), read_execution(settings))


def read_spec(model: str, settings: Settings) -> RunSpec:
    """The settings that say what a run is; raises as `read_settings` does."""
    if not isinstance(model, str):
        raise BadInput(f"model: must be a name like 'simulated/o3-like', found {model!r}")
    given = checked(settings)
    names, urls = given.get("naming", "both"), given.get("base_url")
    fields = {
        **given,
        "namings": NAMINGS if names in ("both", None) else (naming(names),),
        "base_url": None if urls is None else Endpoints(tuple(urls)).urls[0],
    }
    template = given.get("template")
    data, precision, shard = given.get("data"), given.get("precision"), given.get("shard")
    return RunSpec(
        model=model,
        data=None if data is None else Path(data),
        selection=_made(Selection, fields),
        seed=given.get("seed") or 0,
        protocol=_made(Protocol, fields),
        template="named" if template is None else template,
        options=_made(ModelOptions, fields),
        stopping_rule=None if precision is None else StoppingRule(precision),
        shard=None if shard is None else read_shard(shard),
    )


def read_execution(settings: Settings, *, trust_endpoint: bool = False) -> ExecutionOptions:
    """The settings that only decide how a run is executed; raises as `read_settings` does."""
    given = checked(settings)
    price, urls = given.get("price"), given.get("base_url")
    fields = {
        **given,
        "transport": _made(RequestLimits, given),
        "budget": Budget(given.get("budget_usd"), given.get("max_tokens_total")),
        "price": None if price is None else Price(*price),
        "endpoints": None if urls is None else Endpoints(tuple(urls)),
        "trust_endpoint": trust_endpoint,
    }
    return _made(ExecutionOptions, fields)


def _made(kind: type[T], fields: Mapping[str, Any]) -> T:
    return kind(**{name: fields[name] for name in kind.__struct_fields__ if name in fields})


def kept_of(settings: Settings) -> dict[str, ExecutionSetting]:
    """What a run file keeps of the settings with which it is played.

    Endpoints and clusters are not kept: a run file from somebody else must not choose them.
    """
    found = {name: settings[name] for name in KEPT if name in settings}  # type: ignore[literal-required]
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if value != field_default(name)
    }


def read_kept(file: RunFile) -> Settings:
    """The settings that a run file keeps; raises `BadInput` for those that this version cannot use."""
    try:
        if unknown := file.execution.keys() - set(KEPT):
            raise UnknownName("setting", min(unknown), KEPT)
        return checked(file.execution)
    except BadInput as error:
        raise BadInput(
            f"{file_name(file.path)}: was played with settings that this version cannot use ({error}); "
            f"resume it with propensitybench {file.manifest.package}, which made it"
        ) from error


def read_model_options(options: Mapping[str, Any], file: str, package: str) -> ModelOptions:
    """The model options that a run file stores.

    Args:
        options: as stored.
        file: the run file's name.
        package: version that made the file.

    Raises:
        BadInput: this version does not know one of them.
    """
    unknown = sorted(options.keys() - set(ModelOptions.__struct_fields__))
    if unknown:
        raise BadInput(
            f"{file}: stores the model option {', '.join(map(repr, unknown))}, which this version does not "
            f"know; resume it with propensitybench {package}, which made it"
        )
    try:
        return msgspec.convert(options, ModelOptions)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{file}: stores a model option that this version cannot use ({error}); resume it with "
            f"propensitybench {package}, which made it"
        ) from error


def default_file(spec: RunSpec) -> Path:
    """Where a run is kept unless a file is named: the same for every selection, so that the run grows there.

    A run that cannot grow has a file for each selection.
    """
    if spec.stopping_rule is None and spec.shard is None:
        spec = msgspec.structs.replace(spec, selection=Selection())
    identity = digest(msgspec.json.encode(spec, enc_hook=str, order="sorted"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model.removeprefix(PREFIX))
    return FOLDER / f"{name}-{identity[:8]}.run"


def checked(settings: Mapping[str, Any], known: Collection[str] = SETTINGS) -> Settings:
    """The settings that are not None, each of its type and within its bounds.

    Args:
        settings: by name.
        known: those that there are.

    Raises:
        BadInput: a setting does not exist, or has the wrong type or an impossible value.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            raise UnknownName("setting", name, known)
        if value is None:
            continue
        try:
            found[name] = _of_its_type(name, value)
        except (msgspec.ValidationError, ValueError) as error:
            is_short = isinstance(value, str | int | float)
            shown = f", found {str(value)[:MAX_SHOWN]}" if is_short else ""
            raise BadInput(f"{name}: must be {must_be(name)}{shown}") from error
    return cast(Settings, found)


def _of_its_type(name: str, value: Any) -> Any:
    if name == "base_url" and isinstance(value, str):
        value = (value,)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if is_deeper_than(MAX_NESTED, value):
        raise ValueError(name)
    found = msgspec.convert(value, TYPES[name])
    if not _is_finite(found):
        raise ValueError(name)
    return found


def _is_finite(value: object) -> bool:
    return all(
        isfinite(one) for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, float)
    )
