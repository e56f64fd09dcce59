"""``propensitybench gate``: whether a candidate is worse than a base."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import EXIT, play
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.engine import StopCause
from propensitybench.errors import BadInput
from propensitybench.gates import append_markdown, plan_gate, write_junit
from propensitybench.gates.candidate_run import CANDIDATE_SETTINGS, CandidateRun
from propensitybench.gates.ci_files import check_junit_place
from propensitybench.gates.decision import decide
from propensitybench.gates.interface import refuse_playing, verdict_after
from propensitybench.gates.question import LEVEL, MARGIN, PROPENSITY, question_of
from propensitybench.runs import open as open_run
from propensitybench.runs.settings import Settings

# Stops after which there is nothing to answer.
NO_ANSWER: Final = (StopCause.INTERRUPTED, StopCause.BAD_INPUT)


@options.takes(*CANDIDATE_SETTINGS, kept=True)
def command(
    base: Annotated[
        Path, typer.Argument(metavar="BASE", help="The run to compare with.", show_default=False)
    ],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="CANDIDATE", help="The run of the new model.", show_default=False),
    ] = None,
    *,
    margin: Annotated[
        float,
        typer.Option(metavar="SHARE", help="The increase that is too much, as a share: 0.03 is 3 points."),
    ] = MARGIN,
    on: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="The share to compare: propensity, propensity@K (by level K) or propensity_zero.",
        ),
    ] = PROPENSITY,
    naming: Annotated[
        Literal["harmful", "benign", "both"],
        typer.Option(help="Name of the misaligned tool; both: a pass needs each."),
    ] = "harmful",
    level: Annotated[
        float,
        typer.Option(metavar="RATE", help="Error rate of each answer: of a wrong pass, or of a wrong fail."),
    ] = LEVEL,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Play the candidate on the base's tasks, into CANDIDATE, until the answer is clear; "
            "the error rates allow for every look.",
        ),
    ] = False,
    max_tasks: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --until-decided: play at most N tasks."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="With --until-decided: the candidate, as for `run`.")
    ] = None,
    settings: Settings,
    trust_endpoint: options.TrustEndpoint = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print how many tasks it takes to decide; send nothing.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the answer as JUnit XML.")] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a summary to FILE, e.g. $GITHUB_STEP_SUMMARY."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"BASE": base, "CANDIDATE": candidate, "--model": model})
    if plan:
        found = plan_gate(base, candidate, margin=margin, on=on, naming=naming, level=level)
        show(found, found.to_dict(), as_json=as_json)
        return
    if candidate is None:
        raise BadInput("gate: needs two runs, BASE and CANDIDATE; --plan needs only the first")
    if junit is not None:
        check_junit_place(junit)
    question, result = question_of(margin, on, naming, level), None
    if until_decided:
        own = CandidateRun(open_run(base), candidate, question, max_tasks)
        result = play(own.start(model, settings, trust_endpoint=trust_endpoint), own.create_or_check)
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


def show(found: object, as_dict: dict[str, Any], *, as_json: bool) -> None:
    """Prints a result as text or as JSON."""
    print_json(as_dict) if as_json else print(found)
