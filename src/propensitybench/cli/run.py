"""``propensitybench run``: run a model on a selection of tasks."""

import typer

from propensitybench.cli import options
from propensitybench.cli.options import DEFAULTS
from propensitybench.taxonomy import ESCALATING


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
    propensities: options.AssumePropensity = None,
    icc: options.AssumeIcc = 0.25,
    correlation: options.AssumeCorrelation = 0.5,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import read_extra_body, read_price, read_template, start
    from propensitybench.cli.plan import show_plan
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.runs.settings import Settings, read_settings

    must_be_utf8({"--model": model, "--data": data, "--base-url": base_url, "--extra-body": extra_body})
    spec, execution = read_settings(model, Settings(
        data=data, domains=tuple(domain or ()), roles=tuple(role or ()), capabilities=tuple(capability or ()),
        dimensions=tuple(dimension or ()), naming=naming, limit=limit, epochs=epochs, tpm=tpm, levels=levels,
        precision=precision, workspaces=tuple(workspace or ()), seed=seed, template=read_template(template),
        arm=arm, succeeds_at=succeeds_at, ask=ask, report=report, base_url=base_url, temperature=temperature,
        top_p=top_p, max_tokens=max_tokens, extra_body=read_extra_body(extra_body), concurrency=concurrency,
        reasoning_effort=reasoning_effort, timeout=timeout, max_retries=max_retries, budget_usd=budget_usd,
        rpm=rpm, max_tokens_total=max_tokens_total, price=read_price(price), preflight=preflight, shard=shard,
    ))  # fmt: skip
    if not plan:
        raise typer.Exit(start(spec, run, execution, as_json=as_json))
    show_plan(spec, run, execution.price, (propensities, icc, correlation), as_json=as_json)
