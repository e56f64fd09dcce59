"""Options that several commands share."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import typer
from typer.models import OptionInfo

from propensitybench.cli.text import must_be_utf8
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import Budget, ExecutionOptions, Price
from propensitybench.errors import BadData, BadInput
from propensitybench.runs.resolve import MAX_SHOWN, checked
from propensitybench.runs.settings import (
    SETTINGS,
    TYPES,
    Names,
    Settings,
    bounds,
    default_of,
    must_be,
    option_of,
)
from propensitybench.taxonomy import ArmName

DEFAULTS: Final = Transport()
LEVELS: Final = 12
Command = Callable[..., None]

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data folder in this project's layout or the published one. Default: the built-in data.",
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="FILE", help="A run file.", show_default=False)]
RunPaths = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Run files, Inspect logs, or folders of them.", show_default=False),
]
Regress = Annotated[
    bool,
    typer.Option("--regression", help="Also fit a regression over these runs (needs the extra `analysis`)."),
]
Hierarchical = Annotated[
    bool,
    typer.Option(
        "--hierarchical",
        help="Also fit the hierarchical model: pressure apart from selection, shrunken capabilities and "
        "workspaces. Takes a minute for each naming of a full run.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
Everything = Annotated[
    bool, typer.Option("--all", help="With --json: every number, not only the six to report.")
]
Embeddings = Annotated[
    str,
    typer.Option(
        "--embeddings",
        metavar="MODEL",
        help="Also compare meanings, by a model2vec model: a folder, or a name on the Hugging Face Hub, "
        "e.g. minishlab/potion-base-8M (extra embeddings).",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
Domains = Annotated[list[str] | None, typer.Option("--domain", help="Only this domain; may be repeated.")]
Workspaces = Annotated[
    list[str] | None, typer.Option("--workspace", help="Only this workspace; may be repeated.")
]
Roles = Annotated[list[str] | None, typer.Option("--role", help="Only this role; may be repeated.")]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capability", help="Only this capability; may be repeated.")
]
Dimensions = Annotated[
    list[str] | None, typer.Option("--dimension", help="Only this pressure dimension; may be repeated.")
]

# The model and the tasks.
Model = Annotated[
    str,
    typer.Option("--model", help="The model, e.g. simulated/o3-like or openai/o4-mini.", show_default=False),
]
RunToMake = Annotated[
    Path,
    typer.Option(
        "--run", metavar="FILE", help="Run file to create, or to resume if it exists.", show_default=False
    ),
]
ShardOnly = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Play only the I-th of N shards of the run, in a run file of its own; `merge` combines them.",
    ),
]
NamingChoice = Annotated[
    Literal["harmful", "benign", "both"], typer.Option("--naming", help="Name of the misaligned tool.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        help="Play a balanced sample of N scenario-dimension pairs, each under every selected naming.",
    ),
]
Levels = Annotated[
    int,
    typer.Option(
        "--levels",
        min=0,
        max=LEVELS,
        help="Stop each task after K pressure messages. Cheaper, but the result is PP@K, not the propensity.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="SHARE",
        help="Stop when the 95 % interval of the propensity is at most +- SHARE under every naming, e.g. "
        "0.02. Tasks are drawn in batches of 80 pairs, at least 400. The rule looks at the width of the "
        "interval, not at its value, so the interval keeps its coverage.",
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, max=10_000, help="Repetitions of each task.")]
ArmChoice = Annotated[
    ArmName,
    typer.Option(
        "--arm",
        help="The variant to play, to tell an effect of pressure from others (docs/experiments.md). Only "
        "escalating gives the propensity.",
    ),
]
SucceedsAt = Annotated[
    int,
    typer.Option(
        "--succeeds-at",
        metavar="N",
        min=1,
        help="With --arm open: the right call of the safe tool that succeeds.",
    ),
]
Ask = Annotated[
    bool, typer.Option("--ask", help="Offer a tool that puts a question to those who may decide.")
]
Report = Annotated[
    bool,
    typer.Option(
        "--report", help="Ask for a closing report after the end of each task, and compare it with the facts."
    ),
]
Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="NAME|FILE",
        help="System message: named (the policy names the misaligned tool), unnamed (it only forbids the "
        "act), or a Jinja template of your own.  [default: named]",
    ),
]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Print expected calls, tokens, cost and power; send nothing.")
]
CostOnly = Annotated[
    bool, typer.Option("--plan", help="Print expected calls, tokens and cost; send nothing.")
]
AssumePropensity = Annotated[
    list[float] | None,
    typer.Option(
        "--assume-propensity",
        metavar="SHARE",
        help="With --plan: the model's propensity; may be repeated. Default: 0.1 and 0.5.",
    ),
]
# Sampling options: part of what a run is.
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint; --model is then the endpoint's own model name.",
    ),
]
BaseUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint; --model is then the endpoint's own model name. Repeated: "
        "replicas of the model.",
    ),
]
GoesOnAt = Annotated[
    list[str] | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="Send requests to this endpoint instead of the one that the run file names; may be repeated.",
    ),
]
Temperature = Annotated[
    float | None, typer.Option("--temperature", help="Sampling temperature. Default: the provider's.")
]
TopP = Annotated[float | None, typer.Option("--top-p", help="Nucleus sampling. Default: the provider's.")]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="Longest reply, reasoning included. Default: the provider's."),
]
ReasoningEffort = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None,
    typer.Option("--reasoning-effort", help="For reasoning models. Default: the provider's."),
]
ExtraBody = Annotated[
    str | None, typer.Option("--extra-body", metavar="JSON", help="Object merged into every request body.")
]

# How requests are sent and when to stop: may differ when a run is resumed.
Concurrency = Annotated[
    int, typer.Option("--concurrency", help="Episodes, and so requests, in flight.", min=1)
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1.0, max=86_400.0, help="Seconds for one attempt of a request.")
]
MaxRetries = Annotated[
    int, typer.Option("--max-retries", min=0, help="Retries of a request after a transient error.")
]
Rpm = Annotated[int | None, typer.Option("--rpm", min=1, help="Requests per minute and API key.")]
Tpm = Annotated[int | None, typer.Option("--tpm", min=1, help="Tokens per minute and API key.")]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", min=0.0, help="Stop at this cost in US dollars.")
]
MaxTokensTotal = Annotated[
    int | None, typer.Option("--max-tokens-total", min=1, help="Stop at this number of tokens.")
]
PriceGiven = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN,OUT[,CACHED]",
        help="US dollars per million tokens, for a model that the price table does not list.",
    ),
]
Preflight = Annotated[
    bool, typer.Option("--preflight/--no-preflight", help="Check the endpoint before the first task.")
]


def _as_before(option: Any, first: object) -> OptionInfo:
    """The same option without a default of its own: if it is not given, the run file says what it is."""
    info: OptionInfo = copy(get_args(option)[1])
    info.help = f"{info.help}  [default: as before, at first {first}]"
    return info


# Of `run`, `resume` and `gate`.
ConcurrencyKept = Annotated[int | None, _as_before(Concurrency, DEFAULTS.concurrency)]
TimeoutKept = Annotated[float | None, _as_before(Timeout, f"{DEFAULTS.timeout:g}")]
MaxRetriesKept = Annotated[int | None, _as_before(MaxRetries, DEFAULTS.max_retries)]
PreflightKept = Annotated[bool | None, _as_before(Preflight, "preflight")]
TrustEndpoint = Annotated[
    bool,
    typer.Option(
        "--trust-endpoint",
        help="Send requests and the key to the endpoint that the file names, whatever it is.",
    ),
]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option("--engine", help="Play in this process, or on the machines of a Ray cluster (extra `ray`)."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT",
        help="With --engine ray: the cluster. Default: $RAY_ADDRESS, or one on this machine for this run.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="With --engine ray: how many share the tasks, --concurrency, --rpm and --tpm. Default: one for "
        "each CPU of this machine, or for each machine of the cluster.",
    ),
]


def settings_of(*kinds: type) -> tuple[str, ...]:
    """The names of the settings that belong to some types, see `Setting.of`."""
    return tuple(name for name, setting in SETTINGS.items() if setting.of in kinds)


# Of a model that is asked something; how requests are sent, and when to stop; where tasks are played.
MODEL: Final = settings_of(ModelOptions)
LIMITS: Final = settings_of(Transport, Budget, Price)
PLACES: Final = settings_of(ExecutionOptions)


def takes(*names: str, kept: bool = False, **texts: str) -> Callable[[Command], Command]:
    """Gives a command the options of settings; it gets those that were typed as its argument ``settings``.

    Args:
        names: of the settings.
        kept: whether what is left out is as the run file says.
        texts: help of settings, where the usual one is not true of this command.
    """

    def decorate(command: Command) -> Command:
        parameters = []
        for parameter in signature(command, eval_str=True).parameters.values():
            if parameter.name == "settings":
                parameters += [_parameter(name, texts.get(name), kept=kept) for name in names]
            else:
                parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

        @wraps(command)
        def run(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in names}
            command(**arguments, settings=read_typed(given))

        run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _parameter(name: str, text: str | None, *, kept: bool) -> Parameter:
    setting, kind = SETTINGS[name], TYPES[name]
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if setting.typed is not None:
        kind = str
    elif kind == Names:
        kind = list[str]
    notes = [bounds(name)] if bounds(name) else []
    if default := default_of(name):
        notes.append(
            f"default: as before, at first {default}" if kept and setting.kept else f"default: {default}"
        )
    if text is None:
        text = setting.help + (f"  [{'; '.join(notes)}]" if notes else "")
    declared = setting.option or option_of(name)
    option = typer.Option(declared, metavar=setting.metavar, help=text, show_default=False)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])


def read_typed(given: Mapping[str, Any]) -> Settings:
    """The settings that were typed; raises `BadInput` for a value that cannot be used."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == []:
            continue
        for text in value if isinstance(value, list) else [value]:
            must_be_utf8({option_of(name): text})
        read = SETTINGS[name].typed
        try:
            found |= checked({name: read(value) if read else value})
        except (BadInput, ValueError) as error:
            if isinstance(error, BadData):
                raise
            shown = f"{value:g}" if isinstance(value, float) else str(value)[:MAX_SHOWN]
            raise BadInput(f"{option_of(name)} {shown}: must be {must_be(name)}") from error
    return cast(Settings, found)
