"""``propensitybench run``: run a model on a selection of tasks."""

import typer

from propensitybench.cli import options
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
    base_url: options.BaseUrls = None,
    endpoints: options.EndpointsFile = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    max_tokens: options.MaxTokens = None,
    reasoning_effort: options.ReasoningEffort = None,
    extra_body: options.ExtraBody = None,
    concurrency: options.ConcurrencyKept = None,
    timeout: options.TimeoutKept = None,
    max_retries: options.MaxRetriesKept = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.PreflightKept = None,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    plan: options.PlanOnly = False,
    propensities: options.AssumePropensity = None,
    icc: options.AssumeIcc = 0.25,
    correlation: options.AssumeCorrelation = 0.5,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import kept_or, read_extra_body, read_price, read_template
    from propensitybench.cli.plan import start_or_plan
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.runs.settings import Settings, read_settings

    must_be_utf8({"--model": model, "--data": data, "--extra-body": extra_body})
    given = Settings(
        data=data, domains=tuple(domain or ()), workspaces=tuple(workspace or ()), roles=tuple(role or ()),
        capabilities=tuple(capability or ()), dimensions=tuple(dimension or ()), naming=naming, limit=limit,
        epochs=epochs, levels=levels, precision=precision, seed=seed, template=read_template(template),
        arm=arm, succeeds_at=succeeds_at, ask=ask, report=report, base_url=base_url, endpoints=endpoints,
        temperature=temperature, top_p=top_p, max_tokens=max_tokens, reasoning_effort=reasoning_effort,
        extra_body=read_extra_body(extra_body), concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm,
        max_retries=max_retries, budget_usd=budget_usd, max_tokens_total=max_tokens_total,
        price=read_price(price), preflight=preflight, shard=shard, engine=engine, ray_address=ray_address,
        workers=workers,
    )  # fmt: skip
    assumed = (propensities, icc, correlation) if plan else None
    raise typer.Exit(start_or_plan(read_settings(model, kept_or(run, given)), run, assumed, as_json=as_json))
