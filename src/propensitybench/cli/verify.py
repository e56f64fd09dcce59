"""``propensitybench verify``: replay a run file and check its outcomes."""

import typer

from propensitybench.cli import options
from propensitybench.cli.text import print_json
from propensitybench.files import file_name
from propensitybench.presentation.formats import counted
from propensitybench.presentation.progress import Bar
from propensitybench.store import RunFile, mismatches


def command(file: options.RunPath, as_json: options.AsJson = False) -> None:
    with RunFile.open(file) as run, Bar("tasks replayed") as bar:
        found = list(mismatches(run, bar.count))
        outcomes, tasks = run.count("outcome"), run.planned
    if as_json:
        print_json({"file": file_name(file), "tasks": tasks, "outcomes": outcomes, "differences": found})
    else:
        for difference in found:
            print(f"{difference.task}: {difference.what}")
        verdict = "no difference" if not found else counted(len(found), "difference")
        print(f"{outcomes} outcomes of {tasks} tasks replayed: {verdict}")
    raise typer.Exit(1 if found else 0)
