"""``propensitybench run``: run models on a selection of tasks."""

from pathlib import Path
from typing import cast

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import play_and_print, play_each
from propensitybench.cli.plan import show_plan
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.engine.agents import check_address
from propensitybench.engine.plan import plan_run
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.metrics.power import PROPENSITIES, Assumptions
from propensitybench.runs.config import RunConfig, read_config
from propensitybench.runs.resolve import FOLDER, default_file, read_spec
from propensitybench.runs.settings import SETTINGS, Settings
from propensitybench.runs.start import Start


@options.takes(*SETTINGS, kept=True)
def command(
    *,
    model: options.Models = None,
    run: options.RunToMake = None,
    config: options.Config = None,
    settings: Settings,
    plan: options.PlanOnly = False,
    propensities: options.AssumePropensity = None,
    as_json: options.AsJson = False,
) -> None:
    models, run, settings = _asked(model, run, config, settings)
    if config is not None:
        for one in models:
            _check_with(config, one, settings)
    if plan:
        _plan(models, run, settings, Assumptions(tuple(propensities or PROPENSITIES)), as_json=as_json)
        return
    if len(models) > 1:
        raise typer.Exit(play_each(models, lambda model: _start(model, run, settings), as_json=as_json))
    start = _start(models[0], run, settings)
    name = f"run file: {file_name(start.path)}" if run is None else ""
    raise typer.Exit(play_and_print(start, name, as_json=as_json))


def _asked(
    model: list[str] | None, run: Path | None, config: Path | None, settings: Settings
) -> tuple[list[str], Path | None, Settings]:
    """What was typed, and of what was not, what the file of settings says."""
    stated = RunConfig() if config is None else read_config(config)
    models, run = list(dict.fromkeys(model or stated.models)), run or stated.run
    for one in models:
        must_be_utf8({"--model": one})
    if not models:
        raise BadInput(
            "give a model: --model simulated/o3-like needs no key; or a file with one: --config FILE"
        )
    if run is not None and len(models) > 1:
        raise BadInput(
            f"--run {run}: holds the run of one model; leave it out, and each model gets a file in {FOLDER}"
        )
    return models, run, cast(Settings, {**stated.settings, **settings})


def _check_with(config: Path, model: str, settings: Settings) -> None:
    """Names the file of settings where the model cannot be used with what it says."""
    try:
        check_address(model, read_spec(model, settings).options)
    except BadInput as error:
        raise BadInput(f"{error} (see --config {file_name(config)})") from error


def _start(model: str, run: Path | None, settings: Settings) -> Start:
    spec = read_spec(model, settings)
    return Start(run or default_file(spec), settings, spec)


def _plan(
    models: list[str], run: Path | None, settings: Settings, assumed: Assumptions, *, as_json: bool
) -> None:
    plans = {}
    for model in models:
        spec, start = read_spec(model, settings), _start(model, run, settings)
        plans[model] = plan_run(spec, start.path, start.execution.price, assumed)
        if not as_json:
            if len(models) > 1:
                print(f"model:         {model}")
            show_plan(spec, plans[model])
    if as_json:
        print_json(plans[models[0]] if len(models) == 1 else plans)
