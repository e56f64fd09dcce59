"""``propensitybench judge``: models read transcripts and answer questions about them."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.runs.settings import Settings

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


@options.takes(
    "base_url",
    *options.MODEL,
    *options.LIMITS,
    concurrency="Requests in flight for each judge.  [default: 16]",
)
def command(
    run: options.RunPath,
    settings: Settings,
    question: Questions = None,
    judge: Judges = None,
    consequence: Consequences = None,
    limit: Episodes = None,
    read_scout: Scout = None,
    plan: options.CostOnly = False,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.judging import (
        ask_judges,
        print_answers,
        print_estimate,
        read_results_of_scout,
    )
    from propensitybench.judging.plan import Judging
    from propensitybench.judging.questions import question_names, read_question
    from propensitybench.runs.resolve import read_settings

    if read_scout is not None:
        raise typer.Exit(read_results_of_scout(run, read_scout, question or (), as_json=as_json))
    if not judge:
        raise typer.Exit(print_answers(run, question or (), as_json=as_json))
    settings = Settings(**{"concurrency": 16, **settings})
    spec, execution = read_settings(judge[0], settings)
    typed = question or question_names()
    judging = Judging(
        tuple(map(read_question, typed)), tuple(judge), spec.options, tuple(consequence or ()), limit
    )
    if plan:
        print_estimate(run, judging, execution, as_json=as_json)
        return
    raise typer.Exit(ask_judges(run, judging, execution, typed, as_json=as_json))
