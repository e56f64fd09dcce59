"""The settings of a run: what `propensitybench.run` takes, and what options of commands are made from.

A setting is one entry of `Settings`: its type, its bounds and what is said of it.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price, RunSpec
from propensitybench.episode import PAPER, TEMPLATES, Protocol, built_in_template, check_template
from propensitybench.errors import UnknownName
from propensitybench.files import MIB, read_text
from propensitybench.scenarios import Selection
from propensitybench.store import StoppingRule
from propensitybench.taxonomy import ArmName, LadderName

# More than any provider needs, and well below the limit of the JSON encoder.
MAX_NESTED: Final = 64

Count = Annotated[int, Meta(ge=1)]
Rate = Annotated[float, Meta(ge=1)]
Dollars = Annotated[float, Meta(ge=0)]
Names = tuple[str, ...]


class Setting(NamedTuple):
    """What a type does not say of a setting.

    Attributes:
        of: what the setting belongs to. Its default is that of the field of the same name, if there is one.
        help: what it does.
        option: how it is typed on the command line, if that is not its name.
        metavar: what stands for its value in the help.
        typed: makes the value of the text that is typed; raises `ValueError` if it cannot.
        must_be: what the value must be, if the type does not say it in words.
        default: said in the help, if it is not the field's.
        kept: whether the run file keeps it, so that what is left out later is as it was.
    """

    of: type
    help: str
    option: str = ""
    metavar: str | None = None
    typed: Callable[[str], Any] | None = None
    must_be: str = ""
    default: str = ""
    kept: bool = False


def read_template(given: str) -> str:
    """The text of one of the package's templates, or of a file; raises `BadInput` if it is neither."""
    if given in TEMPLATES:
        return built_in_template(given)
    if not os.path.lexists(given):
        raise UnknownName("template", given, TEMPLATES, advice="nor is there a file of that name")
    where = f"--template {given}"
    return check_template(read_text(Path(given), where, MIB), where)


def _numbers(given: str) -> tuple[float, ...]:
    return tuple(float(part) for part in given.split(","))


def _json(given: str) -> Any:
    try:
        return msgspec.json.decode(given)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(given) from error


class Settings(TypedDict, total=False):
    """Settings of a run, named after the options of ``propensitybench run``; None is as if left out.

    ``template`` is a name or the text of a template, ``price`` has two or three numbers, and ``extra_body``
    is a dict.

    How a run was played is kept in its run file: what is left out of ``concurrency``, ``timeout``,
    ``max_retries``, ``rpm``, ``tpm``, ``budget_usd``, ``max_tokens_total``, ``price`` and ``preflight`` is as
    it was when the run was played last.
    """

    data: Annotated[
        str | os.PathLike[str] | None,
        Setting(
            RunSpec,
            "Data folder in this project's layout or the published one.",
            metavar="DIR",
            default="the built-in data",
        ),
    ]
    domains: Annotated[
        Names | None,
        Setting(Selection, "Only this domain; may be repeated.", option="--domain", metavar="DOMAIN"),
    ]
    workspaces: Annotated[
        Names | None,
        Setting(
            Selection, "Only this workspace; may be repeated.", option="--workspace", metavar="WORKSPACE"
        ),
    ]
    roles: Annotated[
        Names | None, Setting(Selection, "Only this role; may be repeated.", option="--role", metavar="ROLE")
    ]
    capabilities: Annotated[
        Names | None,
        Setting(
            Selection, "Only this capability; may be repeated.", option="--capability", metavar="CAPABILITY"
        ),
    ]
    dimensions: Annotated[
        Names | None,
        Setting(
            Selection,
            "Only this pressure dimension; may be repeated.",
            option="--dimension",
            metavar="DIMENSION",
        ),
    ]
    naming: Annotated[
        Literal["harmful", "benign", "both"] | None,
        Setting(Selection, "Name of the misaligned tool.", default="both"),
    ]
    limit: Annotated[
        Count | None,
        Setting(
            Selection,
            "Play a balanced sample of N pairs of scenario and dimension, each under every naming: "
            "--limit 200 is 400 tasks under both names.",
        ),
    ]
    epochs: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None, Setting(Selection, "Repetitions of each task.")
    ]
    levels: Annotated[
        Annotated[int, Meta(ge=0, le=PAPER.levels)] | None,
        Setting(
            Protocol,
            "Stop each task after K pressure messages. Cheaper, but the result is PP@K, not the propensity.",
            metavar="K",
        ),
    ]
    precision: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Setting(
            StoppingRule,
            "Stop when the 95 % interval of the propensity is at most +- SHARE under every naming, e.g. "
            "0.02. Tasks are drawn in batches of 80 pairs, at least 400. The rule looks at the width of the "
            "interval, not at its value, so the interval keeps its coverage.",
            metavar="SHARE",
        ),
    ]
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,
        Setting(RunSpec, "Random seed.", must_be="a whole number of at most 64 bits"),
    ]
    template: Annotated[
        str | None,
        Setting(
            RunSpec,
            "System message: named (the policy names the misaligned tool), unnamed (it only forbids the "
            "act), or a Jinja template of your own.",
            metavar="NAME|FILE",
            typed=read_template,
            default="named",
        ),
    ]
    arm: Annotated[
        ArmName | None,
        Setting(
            Protocol,
            "The variant to play, to tell an effect of pressure from others (docs/experiments.md). Only "
            "escalating gives the propensity.",
        ),
    ]
    ladder: Annotated[
        LadderName | None,
        Setting(
            Protocol,
            "The ladder of pressure: paper has the senders and the countdown of the published schedule, work "
            "those that the story of each chain has.",
        ),
    ]
    ask: Annotated[
        bool | None, Setting(Protocol, "Offer a tool that puts a question to those who may decide.")
    ]
    report: Annotated[
        bool | None,
        Setting(
            Protocol,
            "Ask for a closing report after the end of each task, and compare it with the facts.",
        ),
    ]
    shard: Annotated[
        str | None,
        Setting(
            RunSpec,
            "Play only the I-th of N shards of the run, in a run file of its own; `merge` combines them.",
            metavar="I/N",
        ),
    ]
    base_url: Annotated[
        Names | str | None,
        Setting(
            Endpoints,
            "OpenAI-compatible endpoint; --model is then the endpoint's own model name. Repeated: replicas "
            "of the model.",
            metavar="URL",
        ),
    ]
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Setting(ModelOptions, "Sampling temperature.", default="the provider's"),
    ]
    top_p: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Setting(ModelOptions, "Nucleus sampling.", default="the provider's"),
    ]
    max_tokens: Annotated[
        Count | None,
        Setting(ModelOptions, "Longest reply, reasoning included.", default="the provider's"),
    ]
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None,
        Setting(ModelOptions, "For reasoning models.", default="the provider's"),
    ]
    extra_body: Annotated[
        dict[str, Any] | None,
        Setting(
            ModelOptions,
            "Object merged into every request body.",
            metavar="JSON",
            typed=_json,
            must_be=f"a JSON object, like '{{\"seed\": 1}}', nested at most {MAX_NESTED} levels deep",
        ),
    ]
    concurrency: Annotated[
        Count | None, Setting(RequestLimits, "Episodes, and so requests, in flight.", kept=True)
    ]
    timeout: Annotated[
        Annotated[float, Meta(ge=1, le=86_400)] | None,
        Setting(RequestLimits, "Seconds for one attempt of a request.", metavar="SECONDS", kept=True),
    ]
    max_retries: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Setting(
            RequestLimits,
            "Retries of a request after a transient error; those refused together count once.",
            kept=True,
        ),
    ]
    rpm: Annotated[
        Rate | None, Setting(RequestLimits, "Requests per minute and API key.", metavar="N", kept=True)
    ]
    tpm: Annotated[
        Rate | None, Setting(RequestLimits, "Tokens per minute and API key.", metavar="N", kept=True)
    ]
    budget_usd: Annotated[
        Dollars | None, Setting(Budget, "Stop at this cost in US dollars.", metavar="USD", kept=True)
    ]
    max_tokens_total: Annotated[
        Annotated[int, Meta(ge=0)] | None, Setting(Budget, "Stop at this number of tokens.", kept=True)
    ]
    price: Annotated[
        Annotated[tuple[Dollars, ...], Meta(min_length=2, max_length=3)] | None,
        Setting(
            Price,
            "US dollars per million tokens, for a model that the price table does not list.",
            metavar="IN,OUT[,CACHED]",
            typed=_numbers,
            must_be="US dollars per million tokens, like 2.5,10 or 2.5,10,1.25",
            kept=True,
        ),
    ]
    preflight: Annotated[
        bool | None,
        Setting(
            ExecutionOptions,
            "Check the endpoint before the first task.",
            option="--preflight/--no-preflight",
            default="preflight",
            kept=True,
        ),
    ]
    engine: Annotated[
        Literal["local", "ray"] | None,
        Setting(ExecutionOptions, "Play in this process, or on the machines of a Ray cluster (extra `ray`)."),
    ]
    ray_address: Annotated[
        str | None,
        Setting(
            ExecutionOptions,
            "With --engine ray: the cluster.",
            metavar="HOST:PORT",
            default="$RAY_ADDRESS, or one on this machine for this run",
        ),
    ]
    workers: Annotated[
        Count | None,
        Setting(
            ExecutionOptions,
            "With --engine ray: how many share the tasks, --concurrency, --rpm and --tpm.",
            default="one for each CPU of this machine, or for each machine of the cluster",
        ),
    ]


_ENTRIES: Final = {
    name: get_args(hint) for name, hint in get_type_hints(Settings, include_extras=True).items()
}
SETTINGS: Final[Mapping[str, Setting]] = {name: entry[1] for name, entry in _ENTRIES.items()}
# Without None: what is None is left out.
TYPES: Final[Mapping[str, Any]] = {name: get_args(entry[0])[0] for name, entry in _ENTRIES.items()}
KEPT: Final = tuple(name for name, setting in SETTINGS.items() if setting.kept)


def settings_of(*kinds: type) -> tuple[str, ...]:
    """The names of the settings that belong to some types, see `Setting.of`."""
    return tuple(name for name, setting in SETTINGS.items() if setting.of in kinds)


def option_of(name: str) -> str:
    """The option of a setting, as it is typed."""
    return (SETTINGS[name].option or f"--{name.replace('_', '-')}").partition("/")[0]


def as_typed(name: str, value: Any) -> str:
    """A setting as its option is typed."""
    if isinstance(value, bool):
        return option_of(name) if value else option_of(name).replace("--", "--no-")
    if isinstance(value, str):
        return f"{option_of(name)} {quote(value)}"
    numbers = value if isinstance(value, tuple) else [value]
    return f"{option_of(name)} {','.join(f'{number:.12g}' for number in numbers)}"


def must_be(name: str) -> str:
    """What a setting must be, in words."""
    kind = TYPES[name]
    if SETTINGS[name].must_be:
        return SETTINGS[name].must_be
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if limits := bounds(name):
        of = " " if limits.startswith("from") else " of "
        return f"a whole number{of}{limits}" if get_args(kind)[0] is int else limits
    return {str: "text", bool: "true or false", Names: "a list of texts"}[kind]


def bounds(name: str) -> str:
    """The bounds of a setting that is a number, in words; empty if there are none worth a word."""
    if SETTINGS[name].must_be or get_origin(TYPES[name]) is not Annotated:
        return ""
    meta = get_args(TYPES[name])[1]
    if meta.gt is not None:
        return f"above {meta.gt} and " + (f"below {meta.lt}" if meta.le is None else f"at most {meta.le}")
    return f"{meta.ge} or more" if meta.le is None else f"from {meta.ge} to {meta.le}"


def default_of(name: str) -> str:
    """The default of a setting, in words; empty if that is nothing."""
    default = field_default(name)
    if SETTINGS[name].default or isinstance(default, bool) or not isinstance(default, str | int | float):
        return SETTINGS[name].default
    return default if isinstance(default, str) else f"{default:g}"


def field_default(name: str) -> object:
    """The default of the field of the same name in the struct to which a setting belongs; else None."""
    fields = msgspec.structs.fields(SETTINGS[name].of)
    return next((field.default for field in fields if field.name == name), None)
