"""``propensitybench judge``: models read transcripts and answer questions about them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.answers import print_results
from propensitybench.cli.asked import print_ending, print_estimate, shown
from propensitybench.cli.execution import read_extra_body, read_price
from propensitybench.cli.options import DEFAULTS
from propensitybench.cli.output import tell
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.errors import BadInput
from propensitybench.judging.asking import judge_run, plan_judging
from propensitybench.judging.judge import CONCURRENCY, asked_of, read_judgement, typed_by_name
from propensitybench.judging.questions import question_names, read_question
from propensitybench.runs import Settings, StoredRun
from propensitybench.runs.read import needs_inspect
from propensitybench.store import RunFile

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
    concurrency: Concurrency = CONCURRENCY,
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
    must_be_utf8({"--base-url": base_url})
    questions = question or ()
    if read_scout is not None:
        _store_scout(run, read_scout, questions)
    if not judge or read_scout is not None:
        _print(run, questions, as_json=as_json)
        return
    settings = Settings(
        base_url=base_url, temperature=temperature, top_p=top_p, max_tokens=max_tokens,
        reasoning_effort=reasoning_effort, extra_body=read_extra_body(extra_body), concurrency=concurrency,
        timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, budget_usd=budget_usd,
        max_tokens_total=max_tokens_total, price=read_price(price),
    )  # fmt: skip
    questions = questions or question_names()
    asked = asked_of(judge, questions, settings, consequence=consequence or (), limit=limit)
    if plan:
        print_estimate(plan_judging(run, *asked), "without reasoning", as_json=as_json)
        return
    with shown("reading") as advance:
        ended = result_until_stopped(lambda stop: judge_run(run, *asked, advance, stop))
    _print(run, questions, as_json=as_json)
    raise typer.Exit(print_ending(ended))


def _store_scout(path: Path, given: Path, questions: Sequence[str]) -> None:
    """Stores a scanner's results of Inspect Scout as answers."""
    if len(questions) != 1:
        raise BadInput("--read-scout: give one --question, whose categories are the scanner's answers")
    try:
        from propensitybench.inspect_adapter.scout import read_scout
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    question = read_question(questions[0])
    found = read_scout(given, question, StoredRun(path))
    with RunFile.open(path, write=True) as file:
        file.annotate(found.annotations, questions={question.digest: question.body}, raters=found.raters)
    tell(f"{len(found.annotations)} answers read")
    for reason, number in found.left_out.items():
        tell(f"left out: {number} results, {reason}")


def _print(path: Path, questions: Sequence[str], *, as_json: bool) -> None:
    found = read_judgement(path, questions)
    if as_json:
        print_json(found.to_dict())
    else:
        print_results(path, found.questions, typed_by_name(questions))
