"""``propensitybench show``: one transcript."""

from typing import Annotated

import typer

from propensitybench.cli import options


def command(
    file: options.RunPath,
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="The task's key, SCENARIO.DIMENSION.NAMING.EPOCH; `export` lists the keys.",
            show_default=False,
        ),
    ],
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.text import print_json, safe
    from propensitybench.runs import StoredRun

    transcript = StoredRun(file).transcript(task)
    if not as_json:
        print(safe(str(transcript)))
        return
    print_json(
        {
            "record": transcript.record,
            "turns": [{**turn._asdict(), "event": turn.event.value} for turn in transcript.turns],
            "messages": transcript.messages,
            "errors": transcript.errors,
        }
    )
