"""``propensitybench compare``: runs on the tasks that they share."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options


def command(
    files: options.RunPaths,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="FILE",
            help="JSON file with a capability index to correlate the propensity with: for three models or "
            'more, named as in --model, {"MODEL": {"value": 1.2, "source": "...", "date": "...", '
            '"family": "..."}}.',
        ),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, to compare what the model said "
            "with what it did; give one or more for each model.",
        ),
    ] = None,
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.comparison import compare_runs

    compare_runs(files, index, stated, regress=regress, as_json=as_json)
