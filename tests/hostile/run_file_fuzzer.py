"""Fuzzes the commands with mutated run files: ``python -m hostile.run_file_fuzzer --mutants 2000 --seed 0``.

With ``--minutes M`` it goes on until the time is over. Each mutant depends on the seed and its number alone;
``--only N`` repeats one. Exit code 1 if anything was found; ``--keep DIR`` keeps those files.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec
from helpers.clients import TaskScript
from helpers.forking import PRELOADED
from helpers.runs import finish, make
from hostile.run_file_mutations import mutate, run_sql
from hostile.run_file_trial import COMMANDS, SLOW, WALL_S, Finding, Trial

from propensitybench.clients import says
from propensitybench.engine import ExecutionOptions, RunSpec, create_run
from propensitybench.judging import keyless
from propensitybench.judging.judges import Judging, judge_run
from propensitybench.judging.people import PersonsAnswer, labelling
from propensitybench.judging.probes import read_probe
from propensitybench.judging.questions import read_question
from propensitybench.judging.sample import Size
from propensitybench.judging.side_branches import Probing, probe_run
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, Shard, StoppingRule

CORPUS: Final = Path(__file__).parent / "corpus"
# The export to Inspect logs takes seconds; only every so many mutants see it.
SLOW_EVERY: Final = 20
# What every mutant of the quick run sees.
QUICK: Final = tuple(COMMANDS[number] for number in (1, 2, 4))
# Imported once and not by every process.
_PRELOADED_QUICK: Final = tuple(
    f"propensitybench.cli.{name}" for name in ("score", "verify", "show", "tables")
)
_PRELOADED: Final = (
    *PRELOADED,
    *_PRELOADED_QUICK,
    *(f"propensitybench.cli.{name}" for name in ("export", "judge", "probe", "report", "resume")),
    "polars",
)


class Case(NamedTuple):
    """A mutant to be made in a folder: its name, and what makes it from a sound file and says how."""

    name: str
    task: str
    make: Callable[[Path], str]
    commands: tuple[tuple[str, ...], ...]


class Result(NamedTuple):
    """What a mutant did."""

    name: str
    mutation: str
    findings: list[Finding]


def seeds(folder: Path) -> list[Path]:
    """Sound run files: finished and judged, half played with errors, under a stopping rule, and a shard."""
    done = make(folder / "done.run", limit=2)
    finish(done)
    judging = Judging((read_question("awareness"), read_question("justification")), (keyless.MODEL,))
    asyncio.run(judge_run(done, judging, ExecutionOptions()))
    asyncio.run(probe_run(done, Probing((read_probe("awareness"),)), ExecutionOptions()))
    with labelling(done, read_question("awareness"), Size(8)) as labels:
        labels.store("Ann", dict.fromkeys(labels.left("Ann"), PersonsAnswer("none")))
    half = make(folder / "half.run", limit=2)
    finish(
        half, TaskScript(lambda task: [] if task.naming == "benign" else [says("no", done=True)] * 13, _MODEL)
    )
    run_sql(half, "DELETE FROM outcome WHERE task = 2; DELETE FROM reply WHERE task = 2 AND turn > 3")
    rule = folder / "rule.run"
    stopping = StoppingRule(0.4, batch=1, least=1)
    create_run(RunSpec(_MODEL, selection=Selection(limit=3), stopping_rule=stopping), rule)
    finish(rule)
    shard = folder / "shard.run"
    create_run(RunSpec(_MODEL, selection=Selection(limit=3), shard=Shard(2, 2)), shard)
    finish(shard)
    return [done, half, rule, shard]


_MODEL: Final = "simulated/o3-like"


def mutants(seed: int, sound: list[Path], quick: bool, first: int = 0) -> Iterator[Case]:
    """Mutants without end. Each depends on the seed and its number alone."""
    for number in count(first):
        chance = Random(f"{seed}.{number}")
        source = chance.choice(sound)

        def build(path: Path, source: Path = source, chance: Random = chance) -> str:
            shutil.copy(source, path)
            return f"{source.name}: {mutate(path, chance)}"

        slow = number % SLOW_EVERY == SLOW_EVERY - 1
        yield Case(
            str(number), _first(source), build, QUICK if quick else (*COMMANDS, SLOW) if slow else COMMANDS
        )


def _first(path: Path) -> str:
    """The key of the first task."""
    with RunFile.open(path) as run:
        return next(run.tasks()).task.key


def corpus(sound: list[Path]) -> Iterator[Case]:
    """The files that were found before: SQL that makes them from the first or a named sound file."""
    by_name = {path.name: path for path in sound}
    for script in sorted(CORPUS.glob("*.sql")):
        lines = script.read_text(encoding="utf-8").splitlines()
        source = next((by_name[line[5:]] for line in lines if line.startswith("-- : ")), sound[0])

        def build(path: Path, source: Path = source, lines: list[str] = lines) -> str:
            shutil.copy(source, path)
            run_sql(path, " ".join(line for line in lines if not line.startswith("--")))
            return lines[0]

        yield Case(script.stem, _first(source), build, COMMANDS)


def try_all(cases: Iterable[Case], folder: Path, jobs: int) -> Iterator[Result]:
    """Runs cases in processes of their own, so many at a time; the folder of one without findings goes."""
    running: dict[int, tuple[Case, Path]] = {}
    waiting = iter(cases)
    while True:
        while len(running) < jobs and (case := next(waiting, None)) is not None:
            place = folder / "boxes" / case.name / "deep" / "er" / "still"
            place.mkdir(parents=True)
            running[_started(case, place)] = case, place
        if not running:
            return
        child, status = os.wait()
        case, place = running.pop(child)
        result = _result(case, place, status)
        box = folder / "boxes" / case.name
        strange = sorted(str(path.relative_to(box)) for path in box.rglob("*pwned*"))
        if strange:
            result.findings.append(Finding("writes outside", "?", ", ".join(strange)))
        if not result.findings:
            shutil.rmtree(box)
        yield result


def _started(case: Case, place: Path) -> int:
    """Starts a process that makes a mutant and calls the commands."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.alarm(WALL_S)
        mutation = case.make(place / "a.run")
        (place / "mutation").write_text(mutation, encoding="utf-8", errors="replace")
        for path in place.glob("a.run*"):
            shutil.copy(path, place / path.name.replace("a.run", "b.run"))
        trial = Trial(place, case.task, lambda command: _note(place, command))
        found = trial.run(case.commands)
        (place / "result").write_bytes(msgspec.json.encode(found))
        code = 0
    finally:
        os._exit(code)


def _note(place: Path, command: str) -> None:
    (place / "command").write_text(command, encoding="utf-8")


def _result(case: Case, place: Path, status: int) -> Result:
    read = {
        name: (place / name).read_text(encoding="utf-8") if (place / name).exists() else ""
        for name in ("mutation", "command", "result")
    }
    if status == 0:
        return Result(case.name, read["mutation"], msgspec.json.decode(read["result"], type=list[Finding]))
    ended = os.waitstatus_to_exitcode(status)
    hang = -ended in (signal.SIGXCPU, signal.SIGALRM)
    what = "hang" if hang else f"process ended with {ended}"
    return Result(case.name, read["mutation"], [Finding(what, read["command"], "")])


def main() -> int:
    """Runs the fuzzer; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=0.0, help="goes on for so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="only one mutant, by its number")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="only the commands that take no second")
    parser.add_argument("--corpus", action="store_true", help="the corpus instead of mutants")
    parser.add_argument("--keep", type=Path, help="copies the mutants with findings to this folder")
    given = parser.parse_args()
    for name in _PRELOADED_QUICK if given.quick else _PRELOADED:
        import_module(name)
    findings: Counter[str] = Counter()
    tried, until = 0, time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound = seeds(folder)
        StoredRun(sound[0]).score()  # imports what the score needs
        cases = corpus(sound) if given.corpus else mutants(given.seed, sound, given.quick, given.only or 0)
        most = 1 if given.only is not None else None if given.minutes or given.corpus else given.mutants
        for result in try_all(islice(cases, most), folder, given.jobs):
            tried += 1
            for finding in result.findings:
                findings[finding.what] += 1
                print(f"--- {result.name} ({result.mutation}): {finding.what} in {finding.command}")
                print(finding.details, flush=True)
            if result.findings and given.keep:
                shutil.copytree(folder / "boxes" / result.name, given.keep / result.name, dirs_exist_ok=True)
            if given.minutes and time.monotonic() > until:
                break
    print(f"{tried} run files tried, {sum(findings.values())} findings: {dict(findings)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
