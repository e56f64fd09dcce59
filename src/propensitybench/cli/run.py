"""``propensitybench run``: a model on a selection of tasks."""

import sys
from pathlib import Path

import msgspec
import typer

from propensitybench.cli import options
from propensitybench.cli.execution import check_model, play_and_print, read_extra_body, read_price
from propensitybench.cli.text import must_be_utf8, print_json, safe
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import Budget, ExecutionOptions, RunSpec, client_for, create_run
from propensitybench.engine.plan import Plan, plan_run
from propensitybench.episode import PAPER, Protocol, built_in_template
from propensitybench.errors import BadInput
from propensitybench.metrics.power import Power
from propensitybench.scenarios import Selection
from propensitybench.store import StoppingRule
from propensitybench.taxonomy import NAMINGS
from propensitybench.taxonomy import naming as naming_named

DEFAULTS = Transport()


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
    levels: options.Levels = PAPER.levels,
    precision: options.Precision = None,
    seed: options.Seed = 0,
    template: options.Template = None,
    base_url: options.BaseUrl = None,
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
    plan: options.PlanOnly = False,
    as_json: options.AsJson = False,
) -> None:
    selection = Selection(
        domains=tuple(domain or ()),
        workspaces=tuple(workspace or ()),
        roles=tuple(role or ()),
        capabilities=tuple(capability or ()),
        dimensions=tuple(dimension or ()),
        namings=NAMINGS if naming == "both" else (naming_named(naming),),
        limit=limit,
        epochs=epochs,
    )
    must_be_utf8({"--model": model, "--data": data, "--base-url": base_url, "--extra-body": extra_body})
    extra = read_extra_body(extra_body)
    asked = ModelOptions(base_url, temperature, top_p, max_tokens, reasoning_effort, extra)
    ladder = Protocol(levels=levels)
    rule = None if precision is None else StoppingRule(precision)
    spec = RunSpec(model, data, selection, seed, ladder, read_template(template), asked, rule)
    transport = Transport(timeout, DEFAULTS.connect_timeout, max_retries, rpm, tpm, concurrency)
    budget = Budget(budget_usd, max_tokens_total)
    execution = ExecutionOptions(transport, budget, read_price(price), preflight)
    if plan:
        print_plan(plan_run(spec, run, execution.price), limit=precision is not None, as_json=as_json)
    else:
        raise typer.Exit(start(spec, run, execution, as_json=as_json))


def start(spec: RunSpec, path: Path, execution: ExecutionOptions, *, as_json: bool) -> int:
    """Makes the run file, if it is not there yet, and plays it; the exit code."""
    client_for(
        spec.model, spec.options, execution.transport
    )  # what cannot be asked should leave no file behind
    if not path.exists():
        wire = check_model(spec.model, spec.options, execution)
        spec = msgspec.structs.replace(spec, wire=wire)
    dataset = create_run(spec, path)
    for warning in dataset.warnings:
        print(f"note: {safe(warning)}", file=sys.stderr)
    return play_and_print(path, execution, as_json=as_json)


def print_plan(plan: Plan, *, limit: bool, as_json: bool) -> None:
    """Prints what a run would ask, cost and show; as an upper limit where it may stop before."""
    if as_json:
        print_json(plan)
        return
    most = " at most (--precision may stop before)" if limit else ""
    print(f"tasks:         {plan.tasks:,}{most}, of which {plan.finished:,} are finished")
    print(f"calls:         {plan.calls.low:,} to {plan.calls.high:,}")
    print(f"input tokens:  {plan.input_tokens.low:,} to {plan.input_tokens.high:,} (much of it cacheable)")
    print(f"output tokens: {plan.output_tokens.low:,} to {plan.output_tokens.high:,}, without reasoning")
    if plan.usd is None:
        print("cost:          unknown, the table has no price for this model; give --price IN,OUT")
    else:
        print(f"cost:          ${plan.usd.low:,.2f} to ${plan.usd.high:,.2f} ({plan.price_source})")
    print(f"basis:         {plan.basis}")
    for power in plan.power:
        print(power_line(power))


def power_line(power: Power) -> str:
    """In a line, what a run could show of a model with an assumed propensity."""
    between = "models" if power.naming_difference is None else "namings or models"
    label = f"if {100 * power.propensity:.0f} %:"
    finds = f"{100 * power.model_difference:.1f} points" if power.model_difference < 1 else "no difference"
    return (
        f"{label:<14} 95 % interval +- {100 * power.half_width:.1f} points; finds {finds} between {between} "
        f"(80 % power, ICC {power.icc:g})"
    )


def read_template(path: Path | None) -> str:
    """The text of a template file; without one, the built-in template."""
    if path is None:
        return built_in_template()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--template {path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"--template {path}: is no text in UTF-8; give a Jinja template") from error
