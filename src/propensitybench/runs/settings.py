"""The settings of a run, as `propensitybench.run` takes them."""

import os
import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypedDict, TypeVar, cast

import msgspec

from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.digests import digest
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price, RunSpec
from propensitybench.episode import Protocol, built_in_template
from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import file_name
from propensitybench.scenarios import Selection
from propensitybench.simulated import PREFIX
from propensitybench.store import RunFile, StoppingRule
from propensitybench.store.shards import read_shard
from propensitybench.taxonomy import NAMINGS, ArmName, naming

FOLDER: Final = Path("propensitybench-runs")
LEAST: Final[Mapping[str, int]] = {
    "concurrency": 1,
    "timeout": 1,
    "max_retries": 0,
    "rpm": 1,
    "tpm": 1,
    "max_tokens": 1,
    "succeeds_at": 1,
    "max_tokens_total": 1,
    "budget_usd": 0,
    "workers": 1,
}
# A day; as for `--timeout`.
MAX_TIMEOUT_S: Final = 86_400.0
# More than any provider needs, and well below the limit of the JSON encoder.
DEEPEST_BODY: Final = 64
T = TypeVar("T")


class _Checked(TypedDict, total=False):
    domains: tuple[str, ...]
    workspaces: tuple[str, ...]
    roles: tuple[str, ...]
    capabilities: tuple[str, ...]
    dimensions: tuple[str, ...]
    naming: Literal["harmful", "benign", "both"]
    limit: int | None
    epochs: int
    seed: int
    levels: int
    precision: float | None
    template: str | None
    arm: ArmName
    succeeds_at: int
    ask: bool
    report: bool
    base_url: str | Sequence[str] | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    reasoning_effort: str | None
    extra_body: dict[str, Any]
    concurrency: int | None
    timeout: float | None
    max_retries: int | None
    rpm: float | None
    tpm: float | None
    budget_usd: float | None
    max_tokens_total: int | None
    price: tuple[float, ...] | None
    preflight: bool | None
    shard: str | None
    engine: Literal["local", "ray"]
    ray_address: str | None
    workers: int | None


class Settings(_Checked, total=False):
    """Settings of a run, named after the options of ``propensitybench run``.

    Several base URLs, or ``endpoints``, a file of them, are replicas of one model. ``template`` is the text
    of a system message template; ``price`` is US dollars per million tokens: input, output and, optionally,
    cached input. ``arm`` is one of `propensitybench.taxonomy.ARMS`; ``succeeds_at`` is the right call of the
    safe tool that succeeds in the arm ``open``; ``ask`` adds a tool to ask those who may decide; ``report``
    asks for a closing report. ``shard`` is text like ``3/64``: play only the third of 64 shards of the run,
    in a run file of its own.

    None is as if a setting were left out. How a run was played is kept in its run file: of ``concurrency``,
    ``timeout``, ``max_retries``, ``rpm``, ``tpm``, ``budget_usd``, ``max_tokens_total``, ``price`` and
    ``preflight``, what is left out is as it was when the run was played last.
    """

    data: str | os.PathLike[str] | None
    endpoints: str | os.PathLike[str] | None


class RunSettings(NamedTuple):
    """What a run is, and how it is executed."""

    spec: RunSpec
    execution: ExecutionOptions


def read_settings(model: str, settings: Settings) -> RunSettings:
    """The settings of a run, checked; a missing setting has the default of the command line.

    Raises:
        BadInput: a setting does not exist, or has the wrong type or an impossible value.
    """
    if not isinstance(model, str):
        raise BadInput(f"run: model: expected a name like 'simulated/o3-like', got {type(model).__name__}")
    given = _checked(settings)
    execution = read_execution(settings)
    endpoints = execution.endpoints
    given["base_url"] = None if endpoints is None else endpoints.read()[0]
    names = given.get("naming", "both")
    precision, data, shard = given.get("precision"), settings.get("data"), given.get("shard")
    spec = RunSpec(
        model=model,
        data=None if data is None else Path(data),
        selection=msgspec.structs.replace(
            _convert(given, Selection), namings=NAMINGS if names == "both" else (naming(names),)
        ),
        seed=given.get("seed", 0),
        protocol=_convert(given, Protocol),
        template=given.get("template") or built_in_template(),
        options=_convert(given, ModelOptions),
        stopping_rule=None if precision is None else StoppingRule(precision),
        shard=None if shard is None else read_shard(shard),
    )
    return RunSettings(spec, execution)


def read_execution(settings: Settings, *, trust_endpoint: bool = False) -> ExecutionOptions:
    """The settings that only decide how a run is executed; raises as `read_settings` does."""
    given = _checked(settings)
    return ExecutionOptions(
        transport=_convert(given, Transport),
        budget=Budget(given.get("budget_usd"), given.get("max_tokens_total")),
        price=_price(given.get("price")),
        preflight=given.get("preflight") is not False,
        engine=given.get("engine", "local"),
        ray_address=given.get("ray_address"),
        workers=given.get("workers"),
        endpoints=_endpoints(given.get("base_url"), settings.get("endpoints")),
        trust_endpoint=trust_endpoint,
    )


def with_kept(path: Path, settings: Settings) -> Settings:
    """The settings given and, of those left out, what the run file keeps; none if there is no such file.

    Raises:
        BadInput: the file keeps what cannot be used, or is not a run file.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if not path.exists():
        return cast(Settings, given)
    with RunFile.open(path) as file:
        kept, package = dict(file.execution), file.manifest.package
    try:
        if unknown := kept.keys() - ExecutionOptions().numbers():
            raise UnknownName("setting", min(unknown), ExecutionOptions().numbers())
        read_execution(cast(Settings, kept))
    except BadInput as error:
        raise BadInput(
            f"{file_name(path)}: was played with settings that this version cannot use ({error}); resume it "
            f"with propensitybench {package}, which made it"
        ) from error
    return cast(Settings, {**kept, **given})


def _endpoints(base_url: str | Sequence[str] | None, file: str | os.PathLike[str] | None) -> Endpoints | None:
    urls = (base_url,) if isinstance(base_url, str) else base_url or ()
    if not urls and file is None:
        return None
    return Endpoints(tuple(urls), None if file is None else Path(file))


def _checked(settings: Settings) -> _Checked:
    known = [*_Checked.__annotations__, *Settings.__annotations__]
    for name in settings:
        if name not in known:
            raise UnknownName("setting", name, known, "run")
    if _depth_exceeds(DEEPEST_BODY, settings.get("extra_body")):
        raise BadInput(f"run: extra_body: is nested more than {DEEPEST_BODY} levels deep")
    given = {name: value for name, value in settings.items() if value is not None}
    checked = _convert(given, _Checked)
    for name, least in LEAST.items():
        value = checked.get(name)
        if isinstance(value, int | float) and not least <= value < inf:
            raise BadInput(f"run: {name}: must be {least} or more, found {value}")
    if (timeout := checked.get("timeout")) is not None and timeout > MAX_TIMEOUT_S:
        raise BadInput(f"run: timeout: must be at most {MAX_TIMEOUT_S:g}, found {timeout}")
    return checked


def _depth_exceeds(most: int, value: object) -> bool:
    """Whether a JSON value is nested deeper than ``most`` levels; true for one that contains itself."""
    level = [value]
    for _ in range(most + 1):
        containers = [one for one in level if isinstance(one, dict | list | tuple)]
        if not containers:
            return False
        inside = (inner for one in containers for inner in (one.values() if isinstance(one, dict) else one))
        level = list({id(inner): inner for inner in inside}.values())
    return True


def _price(numbers: tuple[float, ...] | None) -> Price | None:
    if numbers is None:
        return None
    if len(numbers) not in (2, 3) or not all(0 <= number < inf for number in numbers):
        raise BadInput(f"price: expected US dollars per million tokens like (2.5, 10), got {numbers}")
    return Price(*numbers)


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
    """Where a run is kept unless a file is named: equal settings give the same file."""
    identity = digest(msgspec.json.encode(spec, enc_hook=str, order="sorted"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model.removeprefix(PREFIX))
    return FOLDER / f"{name}-{identity[:8]}.run"


def _convert(found: Mapping[str, Any], kind: type[T]) -> T:
    """The settings of a type, out of those given."""
    fields = {name: value for name, value in found.items() if name in kind.__annotations__}
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        what = what[:1].lower() + what[1:]
        raise BadInput(f"run: {where.rstrip('`')}: {what}" if where else f"run: {what}") from error
