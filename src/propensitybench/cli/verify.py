"""``propensitybench verify``: replay a run file and compare."""

import typer

from propensitybench.cli import options
from propensitybench.cli.text import name_of, print_json, safe
from propensitybench.store import RunFile, verify


def command(file: options.RunPath, as_json: options.AsJson = False) -> None:
    with RunFile.open(file) as run:
        found = list(verify(run))
        outcomes, tasks = run.count("outcome"), run.count("task")
    if as_json:
        print_json({"file": name_of(file), "tasks": tasks, "outcomes": outcomes, "differences": found})
    else:
        for difference in found:
            print(f"{safe(difference.task)}: {safe(difference.what)}")
        verdict = "all as replayed" if not found else f"{len(found)} differ from the replay"
        print(f"{outcomes} outcomes of {tasks} tasks: {verdict}")
    raise typer.Exit(1 if found else 0)
