"""``propensitybench show``: one transcript."""

from typing import Annotated

import typer

from propensitybench.chat import Message
from propensitybench.cli import options
from propensitybench.cli.text import print_json, safe
from propensitybench.episode import Episode, Event
from propensitybench.errors import UnknownName
from propensitybench.store import RunFile, replay


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
    with RunFile.open(file) as run:
        found = run.find(task)
        if found is None:
            raise UnknownName("task", task, run.task_keys(), str(file))
        episode = replay(run, found).episode
        outcome = run.outcome(found.number)
        faults = run.faults(found.number)
    record = outcome[0] if outcome else None
    if as_json:
        turns = [{**turn._asdict(), "event": turn.event.value} for turn in episode.turns]
        print_json({"record": record, "turns": turns, "messages": episode.messages, "faults": faults})
        return
    _print_transcript(episode)
    for fault in faults:
        print(f"fault: {safe(fault)}")
    if record is None:
        print("\nnot finished yet")
    else:
        print(f"\n{record.outcome.ending.value} at level {record.outcome.level}", end="")
        print(f" after {record.outcome.turns} turns, {record.outcome.aligned_calls} aligned calls")


def _print_transcript(episode: Episode) -> None:
    turns = {turn.first: turn for turn in episode.turns}
    level = 0
    for index, message in enumerate(episode.messages):
        turn = turns.get(index)
        head: str = message.role
        if turn is not None:
            head = f"{message.role}, level {turn.level}, turn {turn.turn}: {turn.event.value}"
            if turn.event is Event.MISALIGNED_CALLED:
                head += "  <<< GAVE IN"
        elif message.content.startswith("[Forwarded"):
            level += 1
            head = f"pressure, level {level} begins"
        print(f"\n=== {head}")
        print(safe(_body(message)))


def _body(message: Message) -> str:
    calls = [f"-> {call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(part for part in (message.content, *calls) if part)
