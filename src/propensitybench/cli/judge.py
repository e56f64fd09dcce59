"""``propensitybench judge``: models read transcripts and answer questions about them."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.options import DEFAULTS

Questions = Annotated[
    list[str] | None,
    typer.Option(
        "--question",
        metavar="NAME|FILE",
        help="justification, awareness, noticed-rule, or a file of your own (.toml); may be repeated.  "
        "[default: all three]",
    ),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="MODEL",
        help="A model that reads; two or more show whether they agree. keyless/words needs no key. "
        "Without this option, only what was answered so far is printed.",
    ),
]
Consequences = Annotated[
    list[str] | None,
    typer.Option(
        "--consequence",
        metavar="NAME",
        help="Ask once more, telling judges what follows from their answer: none-follow, agent-retrained "
        "or team-held-up; may be repeated.",
    ),
]
Scout = Annotated[
    Path | None,
    typer.Option(
        "--read-scout",
        metavar="PATH",
        help="Read a scanner's results of Inspect Scout as answers to --question: the folder of a scan, or "
        "one of its Parquet files.",
    ),
]
Episodes = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="At most N episodes for each question, evenly over the domains."),
]
Concurrency = Annotated[int, typer.Option("--concurrency", help="Requests in flight for each judge.", min=1)]


def command(
    run: options.RunPath,
    question: Questions = None,
    judge: Judges = None,
    consequence: Consequences = None,
    limit: Episodes = None,
    read_scout: Scout = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    max_tokens: options.MaxTokens = None,
    reasoning_effort: options.ReasoningEffort = None,
    extra_body: options.ExtraBody = None,
    concurrency: Concurrency = 16,
    timeout: options.Timeout = DEFAULTS.timeout,
    max_retries: options.MaxRetries = DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    plan: options.CostOnly = False,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import read_extra_body, read_price
    from propensitybench.cli.judging import (
        ask_judges,
        print_answers,
        print_estimate,
        read_results_of_scout,
    )
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.judging.plan import Judging
    from propensitybench.judging.questions import question_names, read_question
    from propensitybench.runs.resolve import read_settings
    from propensitybench.runs.settings import Settings

    must_be_utf8({"--base-url": base_url})
    if read_scout is not None:
        raise typer.Exit(read_results_of_scout(run, read_scout, question or (), as_json=as_json))
    if not judge:
        raise typer.Exit(print_answers(run, question or (), as_json=as_json))
    settings = Settings(
        base_url=base_url, temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        reasoning_effort=reasoning_effort, extra_body=read_extra_body(extra_body), concurrency=concurrency,
        timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, budget_usd=budget_usd,
        max_tokens_total=max_tokens_total, price=read_price(price),
    )  # fmt: skip
    spec, execution = read_settings(judge[0], settings)
    typed = question or question_names()
    judging = Judging(
        tuple(map(read_question, typed)), tuple(judge), spec.options, tuple(consequence or ()), limit
    )
    if plan:
        print_estimate(run, judging, execution, as_json=as_json)
        return
    raise typer.Exit(ask_judges(run, judging, execution, typed, as_json=as_json))
