"""``propensitybench show``: one transcript."""

from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.text import print_json, safe
from propensitybench.runs import StoredRun


def command(
    file: options.RunPath,
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="The task's key, as in `export`: SCENARIO.DIMENSION.NAMING.EPOCH.",
            show_default=False,
        ),
    ],
    as_json: options.AsJson = False,
) -> None:
    found = StoredRun(file).transcript(task)
    if as_json:
        turns = [{**turn._asdict(), "event": turn.event.value} for turn in found.turns]
        about = {"record": found.record, "turns": turns, "messages": found.messages, "errors": found.errors}
        print_json(about)
    else:
        print(safe(str(found)))
