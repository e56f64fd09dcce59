"""Run files of somebody else: no code, no hang, no traceback, no write elsewhere, no score of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from helpers.runs import finish, make
from hostile.run_file_mutations import mutate
from hostile.run_file_trial import certified_but_different

TESTS = Path(__file__).parents[1]


def python(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """A Python process with the tests' modules."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )


def fuzz(arguments: Sequence[str], tried: int) -> None:
    done = python("-m", "hostile.run_file_fuzzer", *arguments)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert done.stdout.startswith(f"{tried} run files tried, 0 findings")


@pytest.mark.slow
def test_many_mutants() -> None:
    fuzz(["--mutants", "15", "--seed", "11"], 15)


@pytest.mark.slow
def test_what_was_found_before_stays_mended() -> None:
    fuzz(["--corpus"], len(list(Path(__file__).parent.joinpath("corpus").glob("*.sql"))))


@pytest.mark.slow
def test_no_file_that_verify_passes_is_read_differently_from_its_journal(tmp_path: Path) -> None:
    sound = make(tmp_path / "sound.run", limit=2)
    finish(sound)
    assert certified_but_different(sound) is None
    for number in range(30):
        chance = Random(f"verified {number}")
        mutant = tmp_path / f"{number}.run"
        shutil.copy(sound, mutant)
        mutation = mutate(mutant, chance)
        assert certified_but_different(mutant) is None, mutation


WATCHED = """
import sys
from pathlib import Path
from hostile.run_file_fuzzer import Case, seeds, try_all
folder = Path(sys.argv[1])
(sound, *_) = seeds(folder)
commands = {
    "outside": ("export", "{file}", "--out", "../x.jsonl"),
    "fine": ("score", "{file}"),
    "unwritten": ("score", "{file}", "--nonsense"),
}
link = lambda path: path.hardlink_to(sound) or ""
cases = [Case(name, "x", link, (command,)) for name, command in commands.items()]
for result in try_all(cases, folder, 1):
    print(result.name, sorted({finding.what for finding in result.findings}))
"""


@pytest.mark.slow
def test_the_fuzzer_sees_what_it_looks_for(tmp_path: Path) -> None:
    done = python("-c", WATCHED, tmp_path)
    assert done.stdout.splitlines() == [
        "outside ['writes outside']",
        "fine []",
        "unwritten ['bad input without a sentence']",
    ]
