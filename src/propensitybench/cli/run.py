"""``propensitybench run``: run a model on a selection of tasks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import typer

from propensitybench.cli import options
from propensitybench.cli.options import DEFAULTS
from propensitybench.taxonomy import ESCALATING

if TYPE_CHECKING:
    from propensitybench.runs.settings import Settings

# Options that may be repeated, with the names of their settings.
_REPEATED: Final = {
    "domain": "domains",
    "workspace": "workspaces",
    "role": "roles",
    "capability": "capabilities",
    "dimension": "dimensions",
}
_NO_SETTINGS: Final = ("model", "run", "plan", "propensities", "icc", "correlation", "as_json")


def command(
    model: options.Model,
    run: options.RunToMake,
    data: options.Data = None,
    domain: options.Domains = None,
    workspace: options.Workspaces = None,
    role: options.Roles = None,
    capability: options.Capabilities = None,
    dimension: options.Dimensions = None,
    naming: options.NamingChoice = "both",
    limit: options.Limit = None,
    epochs: options.Epochs = 1,
    levels: options.Levels = options.LEVELS,
    precision: options.Precision = None,
    seed: options.Seed = 0,
    template: options.Template = None,
    arm: options.ArmChoice = ESCALATING,
    succeeds_at: options.SucceedsAt = 1,
    ask: options.Ask = False,
    report: options.Report = False,
    shard: options.ShardOnly = None,
    base_url: options.BaseUrls = None,
    endpoints: options.EndpointsFile = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    max_tokens: options.MaxTokens = None,
    reasoning_effort: options.ReasoningEffort = None,
    extra_body: options.ExtraBody = None,
    concurrency: options.Concurrency = DEFAULTS.concurrency,
    timeout: options.Timeout = DEFAULTS.timeout,
    max_retries: options.MaxRetries = DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.Preflight = True,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    plan: options.PlanOnly = False,
    propensities: options.AssumePropensity = None,
    icc: options.AssumeIcc = 0.25,
    correlation: options.AssumeCorrelation = 0.5,
    as_json: options.AsJson = False,
) -> None:
    given = locals()
    from propensitybench.cli.execution import start
    from propensitybench.cli.plan import show_plan
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.runs.settings import read_settings

    must_be_utf8({"--model": model, "--data": data, "--extra-body": extra_body})
    spec, execution = read_settings(model, _settings(given))
    if not plan:
        raise typer.Exit(start(spec, run, execution, as_json=as_json))
    show_plan(spec, run, execution.price, (propensities, icc, correlation), as_json=as_json)


def _settings(given: Mapping[str, Any]) -> "Settings":
    """The settings of a run that the values of the options give."""
    from propensitybench.cli.execution import read_extra_body, read_price, read_template

    settings = {name: value for name, value in given.items() if name not in (*_NO_SETTINGS, *_REPEATED)}
    settings |= {name: tuple(given[option] or ()) for option, name in _REPEATED.items()}
    settings["base_url"] = tuple(given["base_url"] or ()) or None
    settings["template"] = read_template(given["template"])
    settings["extra_body"] = read_extra_body(given["extra_body"])
    settings["price"] = read_price(given["price"])
    return cast("Settings", settings)  # `read_settings` checks names and types
