"""``propensitybench run``: run a model on a selection of tasks."""

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import play_and_print
from propensitybench.cli.plan import show_plan
from propensitybench.cli.text import must_be_utf8
from propensitybench.metrics.power import PROPENSITIES
from propensitybench.runs.resolve import read_spec
from propensitybench.runs.settings import SETTINGS, Settings
from propensitybench.runs.start import Start


@options.takes(*SETTINGS, kept=True)
def command(
    model: options.Model,
    run: options.RunToMake,
    settings: Settings,
    plan: options.PlanOnly = False,
    propensities: options.AssumePropensity = None,
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"--model": model})
    spec = read_spec(model, settings)
    start = Start(run, settings, spec)
    if plan:
        show_plan(spec, run, start.execution.price, propensities or PROPENSITIES, as_json=as_json)
    else:
        raise typer.Exit(play_and_print(start, as_json=as_json))
