"""``propensitybench run``: a model on a selection of tasks."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.playing import Way, check_endpoint, play_and_print
from propensitybench.cli.text import print_json
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import DEFAULT_CONCURRENCY, RunSpec, client_for, prepare
from propensitybench.engine.plan import Plan, plan_run
from propensitybench.episode import built_in_template
from propensitybench.errors import BadInput
from propensitybench.scenarios import Selection
from propensitybench.taxonomy import NAMINGS
from propensitybench.taxonomy import naming as naming_named

DEFAULTS = Transport()


def command(
    model: Annotated[
        str, typer.Option("--model", help="Whom to ask, e.g. simulated/o3-like.", show_default=False)
    ],
    run: Annotated[
        Path,
        typer.Option(
            "--run", metavar="FILE", help="The run file to make, or to go on with.", show_default=False
        ),
    ],
    data: options.Data = None,
    domain: options.Domains = None,
    workspace: options.Workspaces = None,
    role: options.Roles = None,
    capability: options.Capabilities = None,
    dimension: options.Dimensions = None,
    naming: Annotated[
        Literal["harmful", "benign", "both"],
        typer.Option("--naming", help="How the misaligned tool is named."),
    ] = "both",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help="A balanced sample of N pairs of scenario and dimension; each is played under every naming.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often each task is played.")] = 1,
    seed: options.Seed = 0,
    template: Annotated[
        Path | None,
        typer.Option("--template", metavar="FILE", help="Another system message template (Jinja)."),
    ] = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    max_tokens: options.MaxTokens = None,
    reasoning_effort: options.ReasoningEffort = None,
    extra_body: options.ExtraBody = None,
    concurrency: options.Concurrency = DEFAULT_CONCURRENCY,
    timeout: options.Timeout = DEFAULTS.timeout,
    max_retries: options.MaxRetries = DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.Preflight = True,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what the run would ask and cost; no call is made.")
    ] = False,
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
    text = built_in_template() if template is None else read_template(template)
    model_options = ModelOptions(
        base_url, temperature, top_p, max_tokens, reasoning_effort, options.extra_body(extra_body)
    )
    spec = RunSpec(model, data, selection, seed, template=text, options=model_options)
    way = Way(
        Transport(timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, concurrency=concurrency),
        options.budget(budget_usd, max_tokens_total),
        options.price(price),
        preflight,
    )
    if plan:
        print_plan(plan_run(spec, run, way.price), as_json=as_json)
        return
    client_for(model, model_options, way.transport)  # what cannot be asked should leave no file behind
    check_endpoint(model, model_options, way)
    library = prepare(spec, run)
    for warning in library.warnings:
        print(f"note: {warning}", file=sys.stderr)
    raise typer.Exit(play_and_print(run, way, as_json=as_json))


def print_plan(plan: Plan, *, as_json: bool) -> None:
    """Prints what a run would ask and cost."""
    if as_json:
        print_json(plan)
        return
    print(f"tasks:         {plan.tasks}, of which {plan.finished} are finished")
    print(f"calls:         {plan.calls.low:,} to {plan.calls.high:,}")
    print(f"input tokens:  {plan.input_tokens.low:,} to {plan.input_tokens.high:,} (much of it cacheable)")
    print(f"output tokens: {plan.output_tokens.low:,} to {plan.output_tokens.high:,}, without reasoning")
    if plan.usd is None:
        print("cost:          unknown, the table has no price for this model; give --price IN,OUT")
    else:
        print(f"cost:          ${plan.usd.low:,.2f} to ${plan.usd.high:,.2f} ({plan.price_source})")
    print(f"basis:         {plan.basis}")


def read_template(path: Path) -> str:
    """The text of a template file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--template {path}: cannot be read ({error})") from error
