"""``propensitybench probe``: put questions to the model of a run, on side branches of its episodes."""

from typing import Annotated

import msgspec
import typer

from propensitybench.cli import options
from propensitybench.cli.options import DEFAULTS

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME|FILE",
        help="awareness, stated-policy, or a file of your own (.toml); may be repeated.  [default: both]",
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        metavar="N|end",
        help="Ask before the first reply at level N, or after the end of the task; may be repeated. Default: "
        "those that the probe names.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Only in the first N tasks that have ended: a balanced sample."),
]
Show = Annotated[bool, typer.Option("--show", help="Only print what was answered so far; send nothing.")]


def command(
    run: options.RunPath,
    probe: Probes = None,
    level: Levels = None,
    limit: Limit = None,
    plan: options.CostOnly = False,
    show: Show = False,
    base_url: options.GoesOnAt = None,
    endpoints: options.EndpointsFile = None,
    concurrency: options.Concurrency = DEFAULTS.concurrency,
    timeout: options.Timeout = DEFAULTS.timeout,
    max_retries: options.MaxRetries = DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.Preflight = True,
    trust_endpoint: options.TrustEndpoint = False,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import read_price
    from propensitybench.cli.probing import ask_agent, print_answers, print_estimate
    from propensitybench.judging.probes import probe_names, read_level, read_probe
    from propensitybench.judging.probing import Probing
    from propensitybench.runs.resolve import read_execution
    from propensitybench.runs.settings import Settings

    probes = tuple(read_probe(one) for one in probe or probe_names())
    probing = Probing(probes, tuple(map(read_level, level or ())), limit)
    settings = Settings(
        base_url=base_url, endpoints=endpoints, concurrency=concurrency, timeout=timeout,
        max_retries=max_retries, rpm=rpm, tpm=tpm, budget_usd=budget_usd,
        max_tokens_total=max_tokens_total, price=read_price(price), preflight=preflight,
    )  # fmt: skip
    execution = msgspec.structs.replace(read_execution(settings), trust_endpoint=trust_endpoint)
    if plan:
        print_estimate(run, probing, execution.price, as_json=as_json)
    elif show:
        # Without --probe, also what was asked from files that no longer exist.
        digests = [one.digest for one in probes] if probe else ()
        print_answers(run, digests, probing.levels, as_json=as_json)
    else:
        raise typer.Exit(ask_agent(run, probing, execution, as_json=as_json))
