"""``propensitybench generate``: plan, write, check, read and accept scenarios."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import generate_read, options
from propensitybench.runs.settings import Settings

command = typer.Typer(no_args_is_help=False)
command.command("read")(generate_read.command)

Work = Annotated[Path, typer.Argument(metavar="WORK", help="A working folder.", show_default=False)]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="A folder that does not exist yet, or is empty.", show_default=False
    ),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", metavar="MODEL", help="A model that reads each text as it is written; may be repeated."
    ),
]


@command.callback(invoke_without_command=True)
def _generate(
    context: typer.Context,
    demo: Annotated[
        bool, typer.Option("--demo", help="Do everything with the keyless writer; no API key, no network.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="With --demo: a folder for what it makes.")
    ] = Path("propensitybench-generated"),
    seed: options.Seed = 0,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if not demo:
        print(context.get_help())
        raise typer.Exit
    from propensitybench.cli.generating import demonstrate

    raise typer.Exit(demonstrate(out, seed))


@command.command()
def plan(
    domain: Annotated[str, typer.Option("--domain", help="The domain of all scenarios.", show_default=False)],
    out: Out,
    allocation: Annotated[
        Path | None,
        typer.Option(
            "--allocation", metavar="FILE", help="Which scenarios, as CSV. Default: the published counts."
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary", metavar="FILE", help="Phrases of the act grid, as JSON. Default: built in."
        ),
    ] = None,
    storylines: Annotated[
        int, typer.Option("--storylines", min=0, help="Storylines for each dimension, and neutral ones.")
    ] = 6,
    dimension: Annotated[
        list[str] | None,
        typer.Option(
            "--dimension", help="Storylines only for this dimension, or `neutral`; may be repeated."
        ),
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Plan a set: the act grid, severities by lot, one unit of work for each role."""
    from propensitybench.cli.generating import print_plan
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.generation.plan import Wanted, every_dimension, make_plan

    must_be_utf8({"--out": out, "--allocation": allocation, "--vocabulary": vocabulary})
    wanted = dict.fromkeys(dimension, storylines) if dimension else every_dimension(storylines)
    print_plan(make_plan(Wanted(domain, allocation, vocabulary, wanted, seed), out))


@command.command()
@options.takes(
    "base_url",
    *options.MODEL,
    *options.LIMITS,
    concurrency="Requests in flight.  [default: 16]",
)
def write(
    work: Work,
    settings: Settings,
    model: Annotated[
        str | None, typer.Option("--model", help="The writer, e.g. openai/o4-mini or keyless/parts.")
    ] = None,
    judge: Judges = None,
    drafts: Annotated[
        Path | None,
        typer.Option("--drafts", metavar="DIR", help="Take role files and storylines that people wrote."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also write again what was set aside or failed the last check.")
    ] = False,
    plan: options.CostOnly = False,
    as_json: options.AsJson = False,
) -> None:
    """Write what is missing with a model, or take texts that people wrote; resumes where it was stopped."""
    from propensitybench.cli.generating import print_estimate, take, write_texts
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.errors import BadInput
    from propensitybench.generation.execution import Models
    from propensitybench.runs.resolve import read_settings

    must_be_utf8({"WORK": work, "--model": model, "--drafts": drafts})
    if (model is None) == (drafts is None):
        raise BadInput("generate write: give either --model, who writes, or --drafts, what people wrote")
    if model is None:
        assert drafts is not None
        raise typer.Exit(take(work, drafts, as_json=as_json))
    settings = Settings(**{"concurrency": 16, **settings})
    spec, execution = read_settings(model, settings)
    models = Models(
        model, tuple(judge or ()), spec.options, execution.transport, execution.budget, execution.price
    )
    if plan:
        print_estimate(work, models, as_json=as_json)
        return
    raise typer.Exit(write_texts(work, models, again=again, as_json=as_json))


@command.command()
def check(
    work: Work,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against", metavar="DIR", help="Data set without near-duplicates of these; may be repeated."
        ),
    ] = None,
    embeddings: options.Embeddings = "",
    as_json: options.AsJson = False,
) -> None:
    """Check every text alone and all together; exit code 1 if one fails."""
    from propensitybench.cli.generating import check_texts

    raise typer.Exit(check_texts(work, against or (), embeddings, as_json=as_json))


@command.command()
def accept(work: Work, out: Out, as_json: options.AsJson = False) -> None:
    """Make a data set of what has passed, with a card that says where every text comes from."""
    from propensitybench.cli.generating import accept_texts

    raise typer.Exit(accept_texts(work, out, as_json=as_json))


@command.command()
def status(work: Work, as_json: options.AsJson = False) -> None:
    """Show where every unit stands."""
    from propensitybench.cli.generating import print_status

    print_status(work, as_json=as_json)
