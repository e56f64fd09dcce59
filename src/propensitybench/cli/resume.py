"""``propensitybench resume``: go on with a run that was stopped."""

import typer

from propensitybench.cli import options
from propensitybench.cli.run import play_and_print
from propensitybench.engine import DEFAULT_CONCURRENCY


def command(
    file: options.RunPath,
    concurrency: options.Concurrency = DEFAULT_CONCURRENCY,
    as_json: options.AsJson = False,
) -> None:
    raise typer.Exit(play_and_print(file, concurrency, as_json=as_json))
