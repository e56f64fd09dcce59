"""``propensitybench resume``: resume a run."""

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import play_and_print
from propensitybench.runs.settings import Settings
from propensitybench.runs.start import Start


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
    raise typer.Exit(play_and_print(Start(file, settings, trust_endpoint=trust_endpoint), as_json=as_json))
