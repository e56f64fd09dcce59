"""``propensitybench resume``: resume a run."""

import typer

from propensitybench.cli import options


def command(
    file: options.RunPath,
    base_url: options.GoesOnAt = None,
    endpoints: options.EndpointsFile = None,
    concurrency: options.ConcurrencyKept = None,
    timeout: options.TimeoutKept = None,
    max_retries: options.MaxRetriesKept = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.PreflightKept = None,
    trust_endpoint: options.TrustEndpoint = False,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import kept_or, read_price, resume
    from propensitybench.runs.settings import Settings, read_execution

    given = Settings(
        base_url=base_url, endpoints=endpoints, concurrency=concurrency, timeout=timeout, rpm=rpm, tpm=tpm,
        max_retries=max_retries, budget_usd=budget_usd, max_tokens_total=max_tokens_total,
        price=read_price(price), preflight=preflight, engine=engine, ray_address=ray_address, workers=workers,
    )  # fmt: skip
    execution = read_execution(kept_or(file, given), trust_endpoint=trust_endpoint)
    raise typer.Exit(resume(file, execution, as_json=as_json))
