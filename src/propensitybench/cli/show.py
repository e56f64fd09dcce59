"""``propensitybench show``: one transcript, or the tasks of a run."""

from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile


def command(
    file: options.RunPath,
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK",
            help="The task's key, SCENARIO.DIMENSION.NAMING.EPOCH. Default: list tasks and outcomes.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"TASK": task})
    run = StoredRun(file)
    if task is None:
        _list(run, as_json=as_json)
        return
    transcript = run.transcript(task)
    if not as_json:
        print(transcript)
        return
    print_json(
        {
            "record": transcript.record,
            "turns": [{**turn._asdict(), "event": turn.event.value} for turn in transcript.turns],
            "messages": transcript.messages,
            "closing": transcript.closing,
            "errors": transcript.errors,
        }
    )


def _list(run: StoredRun, *, as_json: bool) -> None:
    with RunFile.open(run.path) as stored:
        keys = stored.task_keys()
    records = {record.metadata.task: record for record in run.records}
    if as_json:
        print_json({"tasks": [{"task": key, "record": records.get(key)} for key in keys]})
        return
    for key in keys:
        stats = records[key].stats if key in records else None
        print(f"{key}  {f'{stats.outcome.value} at level {stats.level}' if stats else 'not finished yet'}")
