"""Simulates what is known, and prints the tables of the documents.

    python -m validation                              everything: about three hours on two idle cores
    python -m validation coverage --replicates 100    one subject, a quick look
    python -m validation gates --write                also replaces the tables of its document

Every setting has its own seed: the tables depend only on the number of replicates. Exit code 1 if a number is
worse than what we promise by more than chance.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

# The processes share the cores; threads of the linear algebra would get in their way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from validation import experiments, gates, judging, monitors, ranks, signs
from validation.coverage import SHEETS
from validation.tables import Block, blocks, replace

DOCS: Final = Path(__file__).parents[1] / "docs"


class Subject(NamedTuple):
    """What is validated: the document of its tables, how they are made, and the usual replicates."""

    document: str
    tables: Callable[[Executor, int], Iterator[Block]]
    replicates: int


SUBJECTS: Final = {
    "coverage": Subject("metrics.md", partial(blocks, "coverage", SHEETS), 1000),
    "judging": Subject("judging-numbers.md", partial(blocks, "judging", judging.SHEETS), 1000),
    "monitors": Subject("monitoring.md", partial(blocks, "monitors", monitors.SHEETS), 200),
    "ranks": Subject("board.md", ranks.tables, 200),
    "gates": Subject("gate.md", gates.tables, 10_000),
    "findings": Subject("findings.md", signs.tables, 250),
    "experiments": Subject("experiments.md", experiments.tables, 200),
}


def main() -> int:
    """Prints the tables; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m validation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--replicates", type=int, help="of each setting; by default as in the documents")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="replace the tables of the documents")
    given = parser.parse_args()
    if unknown := set(given.subjects) - SUBJECTS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: is not one of {', '.join(SUBJECTS)}")
    wrong = 0
    with ProcessPoolExecutor(given.processes) as pool:
        for subject in map(SUBJECTS.__getitem__, given.subjects or SUBJECTS):
            for block in subject.tables(pool, given.replicates or subject.replicates):
                print(f"## {block.name}\n\n{block.text}\n", flush=True)
                wrong += block.wrong
                if given.write:
                    replace(DOCS / subject.document, block)
    print(f"{wrong} numbers are worse than promised.")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
