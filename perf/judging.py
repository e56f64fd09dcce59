"""How often the intervals of corrected shares cover the truth, with planted judges: docs/judging-numbers.md.

    .venv/bin/python perf/judging.py                     all tables, with 1,000 runs of each setting
    .venv/bin/python perf/judging.py --replicates 100    a quick look
    .venv/bin/python perf/judging.py --write             also replace the tables of the document
    .venv/bin/python perf/judging.py --only Judges       one table

Every setting has its own seed: the tables depend only on the number of runs.
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from pathlib import Path
from typing import Final

# The processes share the cores; threads of the linear algebra would get in their way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.coverage.cells import Found, Sheet, simulate  # noqa: E402
from helpers.coverage.judging import SHEETS  # noqa: E402

DOCUMENT: Final = ROOT / "docs" / "judging-numbers.md"


def main() -> None:
    """Runs the simulations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", action="append", choices=[sheet.name for sheet in SHEETS])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for sheet in SHEETS:
            if arguments.only and sheet.name not in arguments.only:
                continue
            found = list(pool.map(simulate, sheet.cells, [arguments.replicates] * len(sheet.cells)))
            text = table(sheet, found)
            print(f"## {sheet.name}\n\n{text}", flush=True)
            if arguments.write:
                write(sheet.name, text)


def table(sheet: Sheet, found: Sequence[Mapping[str, Found]]) -> str:
    """The table of a sheet in Markdown, in percent."""
    names = list(found[0])
    lines = [f"| {' | '.join([*sheet.labels, *names])} |", "| --- " * (len(sheet.labels) + len(names)) + "|"]
    lines += [
        f"| {' | '.join([*cell.row, *(entry(columns[name]) for name in names)])} |"
        for cell, columns in zip(sheet.cells, found, strict=True)
    ]
    replicates = max(one.replicates for columns in found for one in columns.values())
    error = 100 * sqrt(0.95 * 0.05 / replicates)
    note = f"{replicates:,} runs a setting; Monte-Carlo error of a coverage of 95 %: {error:.1f} points."
    return "\n".join([*lines, "", note, ""])


def entry(found: Found) -> str:
    """A share in percent, with that of the runs which have the number, if not all do."""
    if not found.shown:
        return "none"
    shown = "" if found.shown == found.replicates else f" [{100 * found.shown / found.replicates:.1f}]"
    return f"{100 * found.mean:.1f}{shown}"


def write(name: str, text: str) -> None:
    """Replaces the block of a sheet in the document."""
    page = DOCUMENT.read_text(encoding="utf-8")
    marker = f"judging-{name.lower().replace(' ', '-')}"
    block = re.compile(rf"(<!-- begin: {marker} -->\n).*?(<!-- end -->)", re.DOTALL)
    if len(block.findall(page)) != 1:
        raise SystemExit(f"{DOCUMENT}: no block {marker}")
    DOCUMENT.write_text(block.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
