"""Measures the cost of the harness: CPU time per model call and peak memory, with the agent in-process.

Every episode has its full length (13 levels of 12 turns) and every reply is journaled. For comparison, the
same requests are encoded and the same replies decoded with msgspec alone, which any harness has to do.

    make bench                                           a quick measurement
    .venv/bin/python perf/harness_cost.py --epochs 13    as many tasks as the full data set has
"""

import argparse
import resource
import tempfile
import time
from functools import cache
from pathlib import Path

import msgspec

from propensitybench.chat import ConversationContext, Reply
from propensitybench.clients import ScriptedClient, calls
from propensitybench.clients.options import RequestLimits
from propensitybench.engine import ExecutionOptions, Progress, RunSpec, create_run, run_tasks
from propensitybench.episode import PAPER, replay
from propensitybench.scenarios import Scenario, Selection, read_dataset
from propensitybench.store import RunFile, encode_reply

MODEL = "perf/full-length"


@cache
def scenarios() -> dict[str, Scenario]:
    """The built-in scenarios by name."""
    return {scenario.name: scenario for scenario in read_dataset().scenarios}


@cache
def script(name: str) -> list[Reply]:
    """Replies that last until the final turn of the final level, calling every tool in turn."""
    scenario = scenarios()[name]
    tools = [(getter.name, getter.arguments) for getter in scenario.getters]
    tools.append((scenario.aligned.name, scenario.aligned.arguments))
    turns = PAPER.turns_per_level * (PAPER.levels + 1)
    chosen = [tools[turn % PAPER.turns_per_level % len(tools)] for turn in range(turns)]
    return [calls(tool, **{a: scenario.values[a] for a in arguments}) for tool, arguments in chosen]


def full_length(context: ConversationContext) -> list[Reply]:
    """The script of a task, whose key starts with the scenario's name."""
    return script(context.id.partition(".")[0])


def megabytes() -> float:
    """Peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Plays, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=64)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "perf.run"
        create_run(RunSpec(MODEL, selection=Selection(epochs=arguments.epochs)), path)
        with RunFile.open(path, write=True) as run:
            seconds, peaks = play(run, arguments.concurrency)
            calls_made = run.count("reply")
            alone = msgspec_alone(run)
        per_call = 1e3 * seconds / calls_made
        print(f"tasks                        {run.manifest.tasks}")
        print(f"model calls                  {calls_made} ({calls_made / run.manifest.tasks:.0f} a task)")
        print(f"harness, CPU ms a call       {per_call:.4f}")
        print(f"msgspec alone, CPU ms a call {alone:.4f}")
        print(f"ratio                        {per_call / alone:.2f}")
        print(f"peak memory, MB              {peaks[-1]:.0f} (after a tenth of the tasks {peaks[0]:.0f})")
        print(f"run file, bytes a call       {path.stat().st_size / calls_made:.0f}")


def play(run: RunFile, concurrency: int) -> tuple[float, list[float]]:
    """CPU seconds of the run, and peak memory after each tenth of it."""
    peaks: list[float] = []

    def note(progress: Progress) -> None:
        if progress.finished % max(1, progress.total // 10) == 0:
            peaks.append(megabytes())

    start = time.process_time()
    run_tasks(
        run,
        ScriptedClient(full_length, MODEL),
        ExecutionOptions(RequestLimits(concurrency=concurrency)),
        on_progress=note,
    )
    return time.process_time() - start, peaks


def msgspec_alone(run: RunFile) -> float:
    """CPU ms to encode a request and decode a reply, over 20 full-length episodes."""
    decode = msgspec.json.Decoder(Reply).decode
    encode = msgspec.json.Encoder().encode
    seconds, calls_made = 0.0, 0
    for task, _ in zip(run.tasks(), range(20), strict=False):
        episode = replay(run.job(task)).episode
        tools = script(episode.metadata.scenario)
        replies = [encode_reply(reply) for reply in run.replies(task.number)]
        start = time.process_time()
        for turn, reply in zip(episode.turns, replies, strict=True):
            encode((episode.messages[: turn.first], episode.offered))
            decode(reply)
        seconds += time.process_time() - start
        calls_made += len(tools)
    return 1e3 * seconds / calls_made


if __name__ == "__main__":
    main()
