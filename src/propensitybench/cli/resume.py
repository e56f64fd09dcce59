"""``propensitybench resume``: resume a run."""

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import kept_or, resume
from propensitybench.runs.resolve import read_execution
from propensitybench.runs.settings import Settings


@options.takes(
    "base_url",
    *options.LIMITS,
    *options.PLACES,
    kept=True,
    base_url="Send requests to this endpoint instead of the one that the run file names; may be repeated.",
)
def command(
    file: options.RunPath,
    settings: Settings,
    trust_endpoint: options.TrustEndpoint = False,
    as_json: options.AsJson = False,
) -> None:
    execution = read_execution(kept_or(file, settings), trust_endpoint=trust_endpoint)
    raise typer.Exit(resume(file, execution, as_json=as_json))
