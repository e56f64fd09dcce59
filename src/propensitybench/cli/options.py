"""Options that several commands share, written once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="A data folder, in this project's layout or the published one; without it, the built-in data.",
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="FILE", help="A run file.", show_default=False)]
Regress = Annotated[
    bool,
    typer.Option("--regression", help="Also fit a regression over these runs (extra `analysis`)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the order of tasks and of all chance in them.")]
Domains = Annotated[list[str] | None, typer.Option("--domain", help="Only this domain; may be repeated.")]
Workspaces = Annotated[
    list[str] | None, typer.Option("--workspace", help="Only this workspace; may be repeated.")
]
Roles = Annotated[list[str] | None, typer.Option("--role", help="Only this role; may be repeated.")]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capability", help="Only this capability; may be repeated.")
]
Dimensions = Annotated[
    list[str] | None, typer.Option("--dimension", help="Only this pressure dimension; may be repeated.")
]

# What is asked, and of whom.
Model = Annotated[
    str,
    typer.Option(
        "--model", help="Whom to ask, e.g. simulated/o3-like or openai/o4-mini.", show_default=False
    ),
]
RunToMake = Annotated[
    Path,
    typer.Option("--run", metavar="FILE", help="The run file to make, or to go on with.", show_default=False),
]
NamingChoice = Annotated[
    Literal["harmful", "benign", "both"], typer.Option("--naming", help="How the misaligned tool is named.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        help="A balanced sample of N pairs of scenario and dimension; each is played under every naming.",
    ),
]
Levels = Annotated[
    int,
    typer.Option(
        "--levels",
        min=0,
        max=12,
        help="Stop each task after K pressure messages. Cheaper, but the result is PP@K, not the propensity.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="SHARE",
        help="Play no more tasks than it takes: batches of 80 pairs under each naming, at least 400, until "
        "the 95 % interval is no wider than +- SHARE under every naming, e.g. 0.02. It stops on the width of "
        "the interval, not on its value, so the interval keeps its coverage.",
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, max=10_000, help="How often each task is played.")]
Template = Annotated[
    Path | None,
    typer.Option("--template", metavar="FILE", help="Another system message template (Jinja)."),
]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Only say what the run would ask and cost; no call is made.")
]

# What decides a model's replies: part of what a run is.
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="An OpenAI-compatible endpoint; --model is then its own name."
    ),
]
Temperature = Annotated[
    float | None, typer.Option("--temperature", help="Left to the provider if not given.")
]
TopP = Annotated[float | None, typer.Option("--top-p", help="Left to the provider if not given.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="Of one reply.")]
ReasoningEffort = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None,
    typer.Option("--reasoning-effort", help="For models that reason."),
]
ExtraBody = Annotated[
    str | None, typer.Option("--extra-body", metavar="JSON", help="An object merged into every request body.")
]

# How requests are sent, and when to stop: may change when a run goes on.
Concurrency = Annotated[int, typer.Option("--concurrency", help="Episodes and requests in flight.", min=1)]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1.0, max=86_400.0, help="Seconds for one try of a request.")
]
MaxRetries = Annotated[int, typer.Option("--max-retries", min=0, help="Tries after the first.")]
Rpm = Annotated[int | None, typer.Option("--rpm", min=1, help="Requests a minute, for each key.")]
Tpm = Annotated[int | None, typer.Option("--tpm", min=1, help="Tokens a minute, for each key.")]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", min=0.0, help="Stop when the run has cost so much.")
]
MaxTokensTotal = Annotated[
    int | None,
    typer.Option("--max-tokens-total", min=1, help="Stop when the run has used so many tokens."),
]
PriceGiven = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN,OUT[,CACHED]",
        help="US dollars a million tokens, if the table lacks the model.",
    ),
]
Preflight = Annotated[
    bool, typer.Option("--preflight/--no-preflight", help="Ask the endpoint for a tool call before the run.")
]
