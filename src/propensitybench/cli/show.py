"""``propensitybench show``: one transcript, or the tasks of a run."""

import sys
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.cli.text import must_be_utf8, print_json, shell_quoted
from propensitybench.episode import Outcome
from propensitybench.errors import BadInput
from propensitybench.runs import StoredRun
from propensitybench.runs.matching import Match, TaskFilter, matches, read_levels
from propensitybench.taxonomy import Naming

Task = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK",
        help="The task's key, SCENARIO.DIMENSION.NAMING.EPOCH. Default: list tasks and how they ended.",
        show_default=False,
    ),
]
Outcomes = Annotated[
    list[Outcome] | None,
    typer.Option(
        "--outcome",
        metavar="OUTCOME",
        help=f"Only tasks that ended so: {', '.join(Outcome)}; may be repeated.",
    ),
]
LevelRange = Annotated[
    str | None,
    typer.Option(
        "--level",
        metavar="RANGE",
        help="Only tasks that ended at these levels: 3, 3.. (3 and above), ..2 or 4..6.",
    ),
]
OneNaming = Annotated[
    Naming | None, typer.Option("--naming", help="Only tasks with this name of the misaligned tool.")
]
Domains = Annotated[
    list[str] | None,
    typer.Option("--domain", metavar="DOMAIN", help="Only this domain; may be repeated."),
]
Grep = Annotated[
    str,
    typer.Option(
        "--grep",
        metavar="TEXT",
        help="Only tasks whose transcript has this text, in capitals or not; prints the lines that have it.",
    ),
]


def command(
    file: options.RunPath,
    task: Task = None,
    *,
    outcome: Outcomes = None,
    level: LevelRange = None,
    naming: OneNaming = None,
    domain: Domains = None,
    grep: Grep = "",
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"TASK": task})
    run = StoredRun(file)
    wanted = TaskFilter(
        outcome or (),
        None if level is None else read_levels(level, run.levels),
        (naming,) if naming else (),
        domain or (),
        grep,
    )
    if task is None:
        _list(run, wanted, as_json=as_json)
    elif wanted != TaskFilter():
        raise BadInput(f"show: give the task {task} alone, or filters without a task")
    else:
        _print_transcript(run, task, as_json=as_json)


def _print_transcript(run: StoredRun, task: str, *, as_json: bool) -> None:
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


def _list(run: StoredRun, wanted: TaskFilter, *, as_json: bool) -> None:
    found = matches(run, wanted)
    if as_json:
        print_json({"tasks": [one.to_dict(searched=bool(wanted.text)) for one in found]})
        return
    count, first = 0, ""
    for one in found:
        _print_match(one)
        count, first = count + 1, first or one.task
    if wanted == TaskFilter():
        return
    if not count:
        print_note(f"no task matches, of {run.planned} in {run.file}")
    elif sys.stdout.isatty():
        print_note(
            f"{count} of {run.planned} tasks; to read the first: "
            f"propensitybench show {shell_quoted(run.path)} {first}"
        )


def _print_match(one: Match) -> None:
    stats = one.record.stats if one.record else None
    print(f"{one.task}  {f'{stats.outcome.value} at level {stats.level}' if stats else 'not finished yet'}")
    for line in one.lines:
        print(f"    {line}")
