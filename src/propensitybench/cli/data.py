"""``propensitybench data``: show, validate and export data sets."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Final, Literal

import typer

from propensitybench.cli import data_show, options, tables
from propensitybench.cli.help import App
from propensitybench.cli.text import print_json, write_new
from propensitybench.curation.limits import limits
from propensitybench.curation.validate import validate_dataset
from propensitybench.curation.variety import variety
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.presentation.formats import NOTHING
from propensitybench.presentation.progress import Bar, Stages
from propensitybench.pressure.export import write_own, write_published
from propensitybench.records.croissant import croissant as describe
from propensitybench.runs.resolve import read_spec
from propensitybench.runs.settings import Settings
from propensitybench.scenarios import Dataset, read_dataset, scenario_id
from propensitybench.scenarios.dataset import read_lists
from propensitybench.store.atomic import new_entries, remove_stale

# About how long each part of a data set takes to check; only their proportion matters.
CHECKS_S: Final = {"scenarios": 0.4, "storylines": 0.6}

EXAMPLE: Final = 60

command = App(no_args_is_help=True)


@command.command()
def validate(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Validate a data set and name every issue with its file and place; exit code 1 if there is one."""
    with Bar("scenarios") as bar:
        stages = Stages(bar.update, CHECKS_S)
        stages.at("scenarios")
        dataset, issues = validate_dataset(data, partial(stages.at, "storylines"))
    scenarios, storylines = len(dataset.scenarios), len(dataset.storylines)
    if as_json:
        print_json(
            {
                "source": file_name(dataset.source),
                "scenarios": scenarios,
                "storylines": storylines,
                "issues": [issue._asdict() for issue in issues],
            }
        )
    else:
        for issue in issues:
            print(issue)
        found = "no issue" if not issues else "1 issue" if len(issues) == 1 else f"{len(issues)} issues"
        print(f"{scenarios} scenarios and {storylines} storylines, {found} ({dataset.source})")
    raise typer.Exit(1 if issues else 0)


@command.command()
def stats(
    data: options.Data = None,
    quality: Annotated[
        bool, typer.Option("--quality", help="Show what the texts repeat, with the limit of each measure.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Count what a data set contains."""
    dataset = read_dataset(data)
    found = _counts(dataset)
    if as_json:
        measured = {"quality": _quality(dataset)} if quality else {}
        print_json(found | measured)
    elif quality:
        print_quality(dataset)
    else:
        _print_counts(found)


@command.command("list")
@options.takes("domains", "workspaces", "roles", "capabilities")
def list_(
    settings: Settings,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """List the scenarios of a data set."""
    selection = read_spec("simulated/never", settings).selection
    selection.check(read_lists(data))
    scenarios = read_dataset(data, selection.takes).scenarios
    if as_json:
        fields = ("name", "domain", "workspace", "role", "capability", "description")
        rows = [{"id": scenario_id(s), **{f: getattr(s, f) for f in fields}} for s in scenarios]
        print_json({"scenarios": rows})
        return
    for scenario in scenarios:
        print(f"{scenario.name}  [{scenario.role}; {scenario.capability or 'no capability'}]")


command.command("show")(data_show.command)


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
    text = describe(data)
    if out is None:
        print(text, end="")
    else:
        write_new(out, text)
        print(out)


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
    dataset = read_dataset(data)
    remove_stale(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    try:
        with new_entries(out) as new:
            files = write_published(dataset, new, seed) if layout == "published" else write_own(dataset, new)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror})") from error
    print(f"{len(dataset.scenarios)} scenarios in {files} files: {out}")


def print_quality(dataset: Dataset) -> None:
    """Prints every measure of a data set's texts with its limit and the worst example."""
    rows = []
    for one in _quality(dataset).values():
        value = NOTHING if one["value"] is None else f"{one['value']:.3f}"
        rows.append([one["measures"], value, one["limit"], shorten(one["example"], EXAMPLE)])
    columns = ["measure", "value", "limit", "most frequent, or nearest"]
    tables.show(tables.table("Variety", columns, rows, justify="left"))
    fewest = limits().fewest_scenarios
    if len(dataset.scenarios) < fewest:
        print(f"Limits (limits.json) hold for sets of at least {fewest} scenarios.\n")


def _quality(dataset: Dataset) -> dict[str, dict[str, Any]]:
    found, bounds = variety(dataset.scenarios, dataset.storylines), limits()
    held = len(dataset.scenarios) >= bounds.fewest_scenarios
    return {
        name: {
            "measures": limit.measures,
            "value": found[name].value,
            "limit": f"{limit}{', exceeded' if held and not limit.holds(found[name].value) else ''}",
            "example": found[name].example,
        }
        for name, limit in bounds.by_name.items()
    }


def _counts(dataset: Dataset) -> dict[str, object]:
    """The number of everything in a data set."""
    scenarios = dataset.scenarios
    tools = {name for scenario in scenarios for name in scenario.tool_names()}
    getters = sum(len(scenario.getters) for scenario in scenarios)
    return {
        "source": file_name(dataset.source),
        "layout": dataset.layout,
        "scenarios": len(scenarios),
        "tasks_per_naming": len(scenarios) * len(dataset.dimensions),
        "roles": len({scenario.place for scenario in scenarios}),
        # As in the paper: the misaligned tool counts once, although it has two names.
        "tools": getters + 2 * len(scenarios),
        "tool_names": len(tools),
        "getters": getters,
        "known_arguments": sum(len(scenario.known) for scenario in scenarios),
        "unknown_arguments": sum(len(scenario.unknown) for scenario in scenarios),
        "storylines": len(dataset.storylines),
        "declared": dataset.declared.descriptions(),
        "by_domain": dict(Counter(scenario.domain for scenario in scenarios)),
        "by_workspace": dict(Counter(scenario.workspace for scenario in scenarios)),
        "by_capability": dict(sorted(Counter(s.capability or "(none)" for s in scenarios).items())),
        "storylines_by_ladder": dict(Counter(one.ladder for one in dataset.storylines)),
        "storylines_by_dimension": dict(Counter(one.dimension for one in dataset.storylines)),
    }


def _print_counts(found: Mapping[str, object]) -> None:
    for name, value in found.items():
        if value == {}:
            continue
        if isinstance(value, dict):
            print(f"{name}:")
            for part, number in value.items():
                print(f"  {part}: {number}" if isinstance(number, str) else f"  {number:6}  {part}")
        else:
            print(f"{name}: {value}")
