"""Options that several commands share."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args, get_origin

import typer

from propensitybench.cli.text import must_be_utf8
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, ExecutionOptions, Price
from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.runs.resolve import FOLDER, MAX_SHOWN, checked
from propensitybench.runs.settings import (
    SETTINGS,
    TYPES,
    Names,
    Settings,
    bounds,
    default_of,
    must_be,
    option_of,
    settings_of,
)

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
    typer.Argument(metavar="RUN", help="Run files, Inspect logs, or folders of them.", show_default=False),
]
Regress = Annotated[
    bool,
    typer.Option("--regression", help="Also fit a regression over these runs."),
]
Hierarchical = Annotated[
    bool,
    typer.Option(
        "--hierarchical",
        help="Also fit the hierarchical model: pressure apart from selection, shrunken capabilities and "
        "workspaces (needs the extra `bayes`). Takes minutes for each naming, 20 for a full run.",
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
# The model and the tasks.
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="The model, e.g. simulated/o3-like or openai/o4-mini; repeated: each in a run of its own, one "
        "after the other, under the same limits.",
        show_default=False,
    ),
]
RunToMake = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="FILE",
        help="Run file to create, or to resume and extend if it exists. Default: one in "
        f"{FOLDER}, whose name depends on everything but the selection of tasks.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file of settings, with model and run; what is typed comes before it.",
        show_default=False,
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
TrustEndpoint = Annotated[
    bool,
    typer.Option(
        "--trust-endpoint",
        help="Send requests and the key to the endpoint that the file names, whatever it is.",
    ),
]


# Of a model that is asked something; how requests are sent, and when to stop; where tasks are played.
MODEL: Final = settings_of(ModelOptions)
LIMITS: Final = settings_of(RequestLimits, Budget, Price)
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
            f"default: {default}, or as last time" if kept and setting.kept else f"default: {default}"
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
            if isinstance(error, BadData | UnknownName):
                raise
            shown = f"{value:g}" if isinstance(value, float) else str(value)[:MAX_SHOWN]
            raise BadInput(f"{option_of(name)} {shown}: must be {must_be(name)}") from error
    return cast(Settings, found)
