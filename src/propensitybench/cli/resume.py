"""``propensitybench resume``: resume a run."""

import msgspec
import typer

from propensitybench.cli import options


def command(
    file: options.RunPath,
    base_url: options.GoesOnAt = None,
    endpoints: options.EndpointsFile = None,
    concurrency: options.Concurrency = options.DEFAULTS.concurrency,
    timeout: options.Timeout = options.DEFAULTS.timeout,
    max_retries: options.MaxRetries = options.DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.Preflight = True,
    scratch: options.Scratch = None,
    trust_endpoint: options.TrustEndpoint = False,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import read_price, resume
    from propensitybench.runs.settings import read_execution

    execution = read_execution(
        {
            "base_url": base_url,
            "endpoints": endpoints,
            "concurrency": concurrency,
            "timeout": timeout,
            "max_retries": max_retries,
            "rpm": rpm,
            "tpm": tpm,
            "budget_usd": budget_usd,
            "max_tokens_total": max_tokens_total,
            "price": read_price(price),
            "preflight": preflight,
            "engine": engine,
            "ray_address": ray_address,
            "workers": workers,
            "scratch": scratch,
        }
    )
    execution = msgspec.structs.replace(execution, trust_endpoint=trust_endpoint)
    raise typer.Exit(resume(file, execution, as_json=as_json))
