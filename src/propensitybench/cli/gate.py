"""``propensitybench gate``: whether a candidate is worse than a base."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import EXIT, confirmed, kept_or, play_file, read_extra_body, read_price
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.cli.waiting import result_of
from propensitybench.engine import Result, StopCause
from propensitybench.errors import BadInput
from propensitybench.gates import append_markdown, plan_gate, write_junit
from propensitybench.gates.ci_files import check_junit_place
from propensitybench.gates.decision import decide
from propensitybench.gates.interface import refuse_playing, verdict_after
from propensitybench.gates.question import question_of
from propensitybench.gates.sequential import Candidate
from propensitybench.runs import Settings
from propensitybench.runs import open as open_run

# Stops after which there is nothing to answer.
NO_ANSWER: Final = (StopCause.INTERRUPTED, StopCause.BAD_INPUT)

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
    junit: Junit = None,
    markdown: Markdown = None,
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"BASE": base, "CANDIDATE": candidate, "--model": model, "--extra-body": extra_body})
    if plan:
        found = plan_gate(base, candidate, margin=margin, on=on, naming=naming, level=level)
        show(found, found.to_dict(), as_json=as_json)
        return
    if candidate is None:
        raise BadInput("gate: needs two runs, BASE and CANDIDATE; --plan needs only the first")
    if junit is not None:
        check_junit_place(junit)
    settings = Settings(
        base_url=base_url, endpoints=endpoints, temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        reasoning_effort=reasoning_effort, extra_body=read_extra_body(extra_body), concurrency=concurrency,
        timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, budget_usd=budget_usd,
        max_tokens_total=max_tokens_total, price=read_price(price), preflight=preflight,
    )  # fmt: skip
    question, result = question_of(margin, on, naming, level), None
    if until_decided:
        own = Candidate(open_run(base), candidate, question, max_tasks)
        result = played(own, model, settings, trust_endpoint=trust_endpoint)
        verdict = verdict_after(own, result)
    else:
        refuse_playing({"model": model, "max_tasks": max_tasks, **settings})
        verdict = decide(open_run(base), open_run(candidate), question)
    show(verdict, verdict.to_dict(), as_json=as_json)
    if junit is not None:
        write_junit(verdict, junit)
    if markdown is not None:
        append_markdown(verdict, markdown)
    if verdict.stopped is not None and result is not None and result.cause in NO_ANSWER:
        raise typer.Exit(EXIT[result.cause])
    # A spent budget or a provider that is down leaves the answer open; it is not a fail.
    raise typer.Exit(verdict.exit_code)


def played(own: Candidate, model: str | None, settings: Settings, *, trust_endpoint: bool) -> Result:
    """Plays a candidate, new or begun, until its comparison with the base is decided."""
    settings = kept_or(own.path, settings)
    execution = result_of(own.prepare(model, settings, trust_endpoint=trust_endpoint))
    if model is None and not own.is_over:
        execution = confirmed(own.path, execution)
    return play_file(own.path, execution, own.draw)


def show(found: object, as_dict: dict[str, Any], *, as_json: bool) -> None:
    """Prints a result as text or as JSON."""
    print_json(as_dict) if as_json else print(found)
