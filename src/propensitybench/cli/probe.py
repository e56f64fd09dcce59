"""``propensitybench probe``: put questions to the model of a run, on side branches of its episodes."""

from typing import Annotated

import msgspec
import typer

from propensitybench.cli import options
from propensitybench.runs.settings import Settings

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME|FILE",
        help="awareness, stated-policy, or a file of your own (.toml); may be repeated.  [default: both]",
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        metavar="N|end",
        help="Ask before the first reply at level N, or after the end of the task; may be repeated. Default: "
        "those that the probe names.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Only in the first N tasks that have ended: a balanced sample."),
]
Show = Annotated[bool, typer.Option("--show", help="Only print what was answered so far; send nothing.")]


@options.takes(
    "base_url",
    *options.LIMITS,
    "preflight",
    base_url="Send requests to this endpoint instead of the one that the run file names; may be repeated.",
)
def command(
    run: options.RunPath,
    settings: Settings,
    probe: Probes = None,
    level: Levels = None,
    limit: Limit = None,
    plan: options.CostOnly = False,
    show: Show = False,
    trust_endpoint: options.TrustEndpoint = False,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.probing import ask_agent, print_answers, print_estimate
    from propensitybench.judging.probes import probe_names, read_level, read_probe
    from propensitybench.judging.probing import Probing
    from propensitybench.runs.resolve import read_execution

    probes = tuple(read_probe(one) for one in probe or probe_names())
    probing = Probing(probes, tuple(map(read_level, level or ())), limit)
    execution = msgspec.structs.replace(read_execution(settings), trust_endpoint=trust_endpoint)
    if plan:
        print_estimate(run, probing, execution.price, as_json=as_json)
    elif show:
        # Without --probe, also what was asked from files that no longer exist.
        digests = [one.digest for one in probes] if probe else ()
        print_answers(run, digests, probing.levels, as_json=as_json)
    else:
        raise typer.Exit(ask_agent(run, probing, execution, as_json=as_json))
