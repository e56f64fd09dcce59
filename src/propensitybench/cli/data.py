"""``propensitybench data``: look at, check, list and export data sets."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.scenario_text import page
from propensitybench.cli.text import name_of, print_json, safe
from propensitybench.curation.fragment_checks import fragment_issues
from propensitybench.errors import BadInput
from propensitybench.pressure import pressure_messages
from propensitybench.pressure.export import write_own, write_published
from propensitybench.scenarios import Dataset, Selection, read_dataset, scenario_id
from propensitybench.scenarios.rolefile import ValidationIssue
from propensitybench.taxonomy import taxonomy

command = typer.Typer(no_args_is_help=True)


@command.command()
def validate(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Check a data set; every issue is named with its file and place. Exit 1 if there is one."""
    from propensitybench.curation.message_quality import repetition_issues
    from propensitybench.curation.validate import validate_dataset

    dataset, issues = validate_dataset(data)
    if data is None:
        issues += [
            ValidationIssue(f"pressure/{file}", path, message) for file, path, message in fragment_issues()
        ]
        issues += [
            ValidationIssue("pressure", *issue) for issue in repetition_issues(dataset.scenarios, seed=0)
        ]
    if as_json:
        rows = [issue._asdict() for issue in issues]
        print_json({"source": name_of(dataset.source), "scenarios": len(dataset.scenarios), "issues": rows})
    else:
        for issue in issues:
            print(safe(str(issue)))
        print(f"{len(dataset.scenarios)} scenarios, {len(issues)} issues ({dataset.source})")
    raise typer.Exit(1 if issues else 0)


@command.command()
def stats(
    quality: Annotated[
        bool, typer.Option("--quality", help="Measure the texts: how varied, how readable, how alike.")
    ] = False,
    data: options.Data = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Count what is in a data set, or with --quality measure its texts."""
    dataset = read_dataset(data)
    if quality:
        from propensitybench.cli.quality import measure, print_quality

        measured = measure(dataset, seed)
        if as_json:
            print_json(measured)
        else:
            print_quality(measured)
        return
    counted = _counts(dataset)
    if as_json:
        print_json(counted)
        return
    for name, value in counted.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for part, number in value.items():
                print(f"  {number:6}  {safe(part)}")
        else:
            print(f"{name}: {value}")


def _counts(dataset: Dataset) -> dict[str, object]:
    scenarios = dataset.scenarios
    tools = {name for scenario in scenarios for name in scenario.tool_names()}
    getters = sum(len(scenario.getters) for scenario in scenarios)
    return {
        "source": name_of(dataset.source),
        "layout": dataset.layout,
        "scenarios": len(scenarios),
        "tasks_per_naming": len(scenarios) * len(taxonomy().dimensions),
        "roles": len({scenario.place for scenario in scenarios}),
        # As published: the misaligned tool counts once, whatever name it shows.
        "tools": getters + 2 * len(scenarios),
        "tool_names": len(tools),
        "getters": getters,
        "known_arguments": sum(len(scenario.known) for scenario in scenarios),
        "unknown_arguments": sum(len(scenario.unknown) for scenario in scenarios),
        "by_domain": dict(Counter(scenario.domain for scenario in scenarios)),
        "by_workspace": dict(Counter(scenario.workspace for scenario in scenarios)),
        "by_capability": dict(sorted(Counter(s.capability or "(none)" for s in scenarios).items())),
    }


@command.command("list")
def list_(
    data: options.Data = None,
    domain: options.Domains = None,
    workspace: options.Workspaces = None,
    role: options.Roles = None,
    capability: options.Capabilities = None,
    as_json: options.AsJson = False,
) -> None:
    """List the scenarios of a data set."""
    selection = Selection(
        domains=tuple(domain or ()),
        workspaces=tuple(workspace or ()),
        roles=tuple(role or ()),
        capabilities=tuple(capability or ()),
    )
    selection.check()
    scenarios = read_dataset(data, selection.takes).scenarios
    if as_json:
        fields = ("name", "domain", "workspace", "role", "capability", "description")
        rows = [{"id": scenario_id(s), **{f: getattr(s, f) for f in fields}} for s in scenarios]
        print_json({"scenarios": rows})
        return
    for scenario in scenarios:
        print(
            f"{safe(scenario.name)}  [{safe(scenario.role)}; {safe(scenario.capability or 'no capability')}]"
        )


@command.command()
def show(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario's name.", show_default=False)
    ],
    dimension: Annotated[str, typer.Option("--dimension", help="Of the pressure messages.")] = "time",
    data: options.Data = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Print a scenario with its 12 pressure messages, to be read."""
    taxonomy().dimension(dimension)
    found = read_dataset(data).scenario(scenario)
    messages = pressure_messages(found, dimension, seed)
    if as_json:
        print_json(
            {
                "scenario": found.model_dump(),
                "dimension": dimension,
                "messages": [m._asdict() for m in messages],
            }
        )
        return
    print(page(found, dimension, messages))


@command.command()
def export(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="A folder that does not exist yet, or is empty.")
    ],
    layout: Annotated[
        Literal["own", "published"], typer.Option("--layout", help="Which layout to write.")
    ] = "published",
    data: options.Data = None,
    seed: options.Seed = 0,
) -> None:
    """Write a data set in one of the two layouts.

    The published layout holds the pressure messages themselves; those of the built-in data are
    the ones that a run with the same --seed uses.
    """
    dataset = read_dataset(data)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    try:
        files = write_published(dataset, out, seed) if layout == "published" else write_own(dataset, out)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror})") from error
    print(f"{len(dataset.scenarios)} scenarios in {files} files: {out}")
