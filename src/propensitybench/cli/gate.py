"""``propensitybench gate``: whether a candidate is worse than a base."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.runs.settings import Settings

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


@options.takes("base_url", *options.MODEL, *options.LIMITS, "preflight", kept=True)
def command(
    base: Annotated[
        Path, typer.Argument(metavar="BASE", help="The run to compare with.", show_default=False)
    ],
    settings: Settings,
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
    trust_endpoint: options.TrustEndpoint = False,
    plan: PlanGate = False,
    icc: BaseIcc = None,
    correlation: options.AssumeCorrelation = 0.5,
    junit: Junit = None,
    markdown: Markdown = None,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.gating import Asked, Outputs, Playing, answer, show_plan
    from propensitybench.cli.text import must_be_utf8

    must_be_utf8({"BASE": base, "CANDIDATE": candidate, "--model": model})
    asked = Asked(margin, on, naming, level)
    if plan:
        show_plan(base, candidate, asked, (icc, correlation), as_json=as_json)
        return
    playing = Playing(until_decided, max_tasks, model, settings, trust_endpoint)
    raise typer.Exit(answer(base, candidate, asked, playing, Outputs(junit, markdown, as_json)))
