"""``propensitybench verify``: replay a run file and check its outcomes."""

import typer

from propensitybench.cli import options


def command(file: options.RunPath, as_json: options.AsJson = False) -> None:
    from propensitybench.cli.text import name_of, print_json, safe
    from propensitybench.store import RunFile, verify

    with RunFile.open(file) as run:
        found = list(verify(run))
        outcomes, tasks = run.count("outcome"), run.planned
    if as_json:
        print_json({"file": name_of(file), "tasks": tasks, "outcomes": outcomes, "differences": found})
    else:
        for difference in found:
            print(f"{safe(difference.task)}: {safe(difference.what)}")
        verdict = "no difference" if not found else f"{len(found)} differences"
        print(f"{outcomes} outcomes of {tasks} tasks replayed: {verdict}")
    raise typer.Exit(1 if found else 0)
