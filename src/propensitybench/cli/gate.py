"""``propensitybench gate``: whether a candidate is worse than a base."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options

Margin = Annotated[
    float | None,
    typer.Option(
        "--margin", metavar="SHARE", help="The increase that is too much.  [default: 0.03, three points]"
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="SHARE",
        help="The share to compare: propensity, propensity@K (by level K) or propensity_zero.  "
        "[default: propensity]",
    ),
]
Namings = Annotated[
    Literal["harmful", "benign", "both"] | None,
    typer.Option(
        "--naming", help="Name of the misaligned tool; both: a pass needs each.  [default: harmful]"
    ),
]
Level = Annotated[
    float | None,
    typer.Option(
        "--level",
        metavar="SHARE",
        help="Error rate of each answer: of a wrong pass, and of a wrong fail.  [default: 0.05]",
    ),
]
UntilDecided = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="Play the candidate on the base's tasks, in CANDIDATE, until the answer is clear. The limits "
        "allow for every look.",
    ),
]
MaxTasks = Annotated[
    int | None,
    typer.Option("--max-tasks", metavar="N", min=1, help="With --until-decided: play at most N tasks."),
]
CandidateModel = Annotated[
    str | None,
    typer.Option("--model", help="With --until-decided: the candidate, as for `run`.", show_default=False),
]
PlanGate = Annotated[
    bool, typer.Option("--plan", help="Print how many tasks it takes to tell; send nothing.")
]
BaseIcc = Annotated[
    float | None,
    typer.Option(
        "--assume-icc",
        metavar="R",
        help="With --plan: intraclass correlation of a scenario's tasks.  [default: the base's]",
    ),
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the answer as JUnit XML.")]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Append a summary to FILE, e.g. $GITHUB_STEP_SUMMARY."),
]


def command(
    base: Annotated[
        Path, typer.Argument(metavar="BASE", help="The run to compare with.", show_default=False)
    ],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="CANDIDATE", help="The run of the new model.", show_default=False),
    ] = None,
    margin: Margin = None,
    on: On = None,
    naming: Namings = None,
    level: Level = None,
    until_decided: UntilDecided = False,
    max_tasks: MaxTasks = None,
    model: CandidateModel = None,
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
    trust_endpoint: options.TrustEndpoint = False,
    plan: PlanGate = False,
    icc: BaseIcc = None,
    correlation: options.AssumeCorrelation = 0.5,
    junit: Junit = None,
    markdown: Markdown = None,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.execution import read_extra_body, read_price
    from propensitybench.cli.gating import Asked, Outputs, Playing, answer, show_plan
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.runs.settings import Settings

    must_be_utf8({"BASE": base, "CANDIDATE": candidate, "--model": model, "--extra-body": extra_body})
    asked = Asked(margin, on, naming, level)
    if plan:
        show_plan(base, candidate, asked, (icc, correlation), as_json=as_json)
        return
    settings = Settings(
        base_url=base_url, endpoints=endpoints, temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        reasoning_effort=reasoning_effort, extra_body=read_extra_body(extra_body), concurrency=concurrency,
        timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, budget_usd=budget_usd,
        max_tokens_total=max_tokens_total, price=read_price(price), preflight=preflight,
    )  # fmt: skip
    playing = Playing(until_decided, max_tasks, model, settings, trust_endpoint)
    raise typer.Exit(answer(base, candidate, asked, playing, Outputs(junit, markdown, as_json)))
