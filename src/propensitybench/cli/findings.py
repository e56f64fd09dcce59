"""``propensitybench findings``: the signs of propensity, tested on models."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options


def command(
    files: options.RunPaths,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Also write a page and findings.json into this folder."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="FILE", help="JSON file with a capability index, as for `compare`."),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, used instead of the answers to "
            "`probe`; may be repeated.",
        ),
    ] = None,
    relevant: Annotated[
        list[str] | None,
        typer.Option(
            "--relevant",
            metavar="SIGN=EFFECT",
            help="Another smallest effect that matters, as a share or correlation, e.g. naming=0.1; may be "
            "repeated. The change is shown beside the verdict.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.finding import Given, show_findings

    show_findings(files, Given(index, tuple(stated or ()), tuple(relevant or ())), out, as_json=as_json)
