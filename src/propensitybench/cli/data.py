"""``propensitybench data``: show, validate and export data sets."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.text import name_of, print_json, safe
from propensitybench.errors import BadInput
from propensitybench.runs.resolve import read_settings
from propensitybench.runs.settings import Settings

command = typer.Typer(no_args_is_help=True)


@command.command()
def validate(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Validate a data set and name every issue with its file and place; exit code 1 if there is one.

    Warnings are for the authors to look at and do not change the exit code.
    """
    from propensitybench.curation.validate import review_dataset

    dataset, issues, warnings = review_dataset(data)
    if as_json:
        print_json(
            {
                "source": name_of(dataset.source),
                "scenarios": len(dataset.scenarios),
                "storylines": len(dataset.storylines),
                "issues": [issue._asdict() for issue in issues],
                "warnings": [warning._asdict() for warning in warnings],
            }
        )
    else:
        for issue in issues:
            print(safe(str(issue)))
        for warning in warnings:
            print(safe(f"warning: {warning}"))
        found = f"{len(issues)} issues, {len(warnings)} warnings"
        print(f"{len(dataset.scenarios)} scenarios, {found} ({safe(dataset.source)})")
    raise typer.Exit(1 if issues else 0)


@command.command()
def stats(
    quality: Annotated[
        bool, typer.Option("--quality", help="Measure variety, readability and similarity of the texts.")
    ] = False,
    data: options.Data = None,
    seed: options.Seed = 0,
    embeddings: options.Embeddings = "",
    as_json: options.AsJson = False,
) -> None:
    """Count what a data set contains, or measure its texts."""
    from propensitybench.cli.counts import counts, print_counts
    from propensitybench.scenarios import read_dataset

    if embeddings and not quality:
        raise BadInput("--embeddings: goes with --quality")
    dataset = read_dataset(data)
    if quality:
        from propensitybench.cli.quality import measure, print_quality

        measured = measure(dataset, seed, embeddings)
        if as_json:
            print_json(measured)
        else:
            print_quality(measured)
    elif as_json:
        print_json(counts(dataset))
    else:
        print_counts(counts(dataset))


@command.command("list")
@options.takes("domains", "workspaces", "roles", "capabilities")
def list_(
    settings: Settings,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """List the scenarios of a data set."""
    from propensitybench.scenarios import read_dataset, scenario_id

    selection = read_settings("simulated/never", settings).spec.selection
    selection.check()
    scenarios = read_dataset(data, selection.takes).scenarios
    if as_json:
        fields = ("name", "domain", "workspace", "role", "capability", "description")
        rows = [{"id": scenario_id(s), **{f: getattr(s, f) for f in fields}} for s in scenarios]
        print_json({"scenarios": rows})
        return
    for scenario in scenarios:
        capability_name = safe(scenario.capability or "no capability")
        print(f"{safe(scenario.name)}  [{safe(scenario.role)}; {capability_name}]")


@command.command()
def show(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario's name.", show_default=False)
    ],
    dimension: Annotated[str, typer.Option("--dimension", help="Pressure dimension.")] = "time",
    data: options.Data = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Print a scenario and its 12 pressure messages."""
    from propensitybench.cli.scenario_text import page
    from propensitybench.pressure import pressure_chain
    from propensitybench.scenarios import read_dataset
    from propensitybench.scenarios.storyline import NEUTRAL
    from propensitybench.taxonomy import taxonomy

    if dimension != NEUTRAL:
        taxonomy().dimension(dimension)
    dataset = read_dataset(data)
    found = dataset.scenario(scenario)
    chain = pressure_chain(found, dimension, dataset.storylines, seed)
    if not as_json:
        print(page(found, dimension, chain))
        return
    rows = [message._asdict() for message in chain.messages]
    about = {"dimension": dimension, "storyline": chain.storyline, "messages": rows}
    print_json({"scenario": found.model_dump(), **about})


@command.command()
def croissant(
    data: options.Data = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File that does not exist yet. Default: standard output."),
    ] = None,
) -> None:
    """Describe a data set in Croissant: its files with their digests, and its records.

    The description is meant to lie in the data set's folder, as croissant.json.
    """
    from propensitybench.cli.output import write_new
    from propensitybench.records.croissant import croissant as describe

    text = describe(data)
    if out is None:
        print(text, end="")
    else:
        write_new(out, text)
        print(safe(str(out)))


@command.command()
def export(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="A folder that does not exist yet, or is empty.")
    ],
    layout: Annotated[Literal["own", "published"], typer.Option("--layout", help="Layout.")] = "published",
    data: options.Data = None,
    seed: options.Seed = 0,
) -> None:
    """Write a data set in this project's layout or in the published one.

    The published layout includes the pressure messages: those of a run with the same --seed.
    """
    from propensitybench.pressure.export import write_own, write_published
    from propensitybench.scenarios import read_dataset
    from propensitybench.store.atomic import new_entries, remove_stale

    dataset = read_dataset(data)
    remove_stale(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    try:
        with new_entries(out) as new:
            files = write_published(dataset, new, seed) if layout == "published" else write_own(dataset, new)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror})") from error
    print(f"{len(dataset.scenarios)} scenarios in {files} files: {safe(str(out))}")
