"""How often the intervals cover the truth, in simulated runs through the real estimators.

    .venv/bin/python perf/coverage.py                     all tables, with 1,000 replicates of most settings
    .venv/bin/python perf/coverage.py --replicates 100    a quick look
    .venv/bin/python perf/coverage.py --write             also replace the tables of docs/metrics.md
    .venv/bin/python perf/coverage.py --only "Run again"  one table

About ten minutes on two idle cores. Every setting has its own seed: the tables depend only on the number of
replicates. Exit code 1 if an interval covers less than 93 % by more than its Monte-Carlo error allows.
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
from helpers.coverage.contrasts import FAMILIES, NAMING  # noqa: E402
from helpers.coverage.losses import LOSSES  # noqa: E402
from helpers.coverage.means import MEANS  # noqa: E402
from helpers.coverage.shares import BAND, PROPENSITY  # noqa: E402
from helpers.coverage.stopped import STOPPED, STOPPED_OTHERS  # noqa: E402
from helpers.coverage.stopping import BY_WIDTH  # noqa: E402
from helpers.coverage.workspaces import RERUNS, WORKSPACES  # noqa: E402

SHEETS: Final[Sequence[Sheet]] = (
    PROPENSITY,
    BAND,
    LOSSES,
    STOPPED,
    STOPPED_OTHERS,
    BY_WIDTH,
    NAMING,
    FAMILIES,
    MEANS,
    WORKSPACES,
    RERUNS,
)
PAGE: Final = ROOT / "docs" / "metrics.md"
LOW, HIGH = 0.93, 0.97
# Monte-Carlo errors by which a coverage may miss the range; of 400 settings on its edge, one misses by more.
ALLOWED: Final = 3.0

Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", action="append", choices=[sheet.name for sheet in SHEETS])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    sheets = [sheet for sheet in SHEETS if not arguments.only or sheet.name in arguments.only]
    below = 0
    with ProcessPoolExecutor(arguments.processes) as pool:
        for sheet in sheets:
            many = [arguments.replicates] * len(sheet.cells)
            found = list(pool.map(simulate, sheet.cells, many))
            text = table(sheet, found)
            print(f"## {sheet.name}\n\n{text}", flush=True)
            below += sum(is_low(one) for cell in found for one in cell.values())
            if arguments.write:
                replace(sheet.name, text)
    print(f"{below} settings cover less than 93 %.")
    return int(below > 0)


def is_low(found: Found) -> bool:
    """Whether a coverage is below the range, by more than chance."""
    return found.is_coverage and found.mean < LOW - ALLOWED * found.error


def table(sheet: Sheet, found: Sequence[Mapping[str, Found]]) -> str:
    """The table of a sheet in Markdown, with a line about its Monte-Carlo error."""
    rows: dict[Row, dict[str, Found]] = {}
    for cell, columns in zip(sheet.cells, found, strict=True):
        rows.setdefault(cell.row, {}).update(columns)
    names = list(dict.fromkeys(name for columns in found for name in columns))
    head = [*sheet.labels, *(name.strip() for name in names)]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row, columns in rows.items():
        entries = [entry(columns[name]) if name in columns else "" for name in names]
        lines.append(f"| {' | '.join([*row, *entries])} |")
    counts = sorted({one.replicates for columns in found for one in columns.values() if one.is_coverage})
    errors = [f"{100 * sqrt(0.95 * 0.05 / count):.1f}" for count in counts]
    runs = " or ".join(f"{count:,}" for count in counts)
    note = f"{runs} runs a setting; Monte-Carlo error of a coverage of 95 %: {' or '.join(errors)} points."
    return "\n".join([*lines, "", note, ""])


def entry(found: Found) -> str:
    """A coverage in percent, with the share of runs that have an interval; or a mean."""
    if not found.shown:
        return "none"
    if not found.is_coverage:
        return f"{found.mean:,.0f}" if found.mean >= 100 else f"{found.mean:.1f}"
    text = f"{100 * found.mean:.1f}"
    if is_low(found):
        text = f"**{text}**"
    elif found.mean > HIGH + 2 * found.error:
        text += " c"
    shown = 100 * found.shown / found.replicates
    return (
        text
        if found.shown == found.replicates
        else f"{text} [{shown:.{1 if shown > 99 or shown < 1 else 0}f}]"
    )


def marker(name: str) -> str:
    """The name of a sheet's block in the document."""
    return f"coverage-{name.lower().replace(',', '').replace(' ', '-')}"


def replace(name: str, text: str) -> None:
    """Replaces the block of a sheet in docs/metrics.md."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- begin: {marker(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if len(block.findall(page)) != 1:
        raise SystemExit(f"{PAGE}: no block {marker(name)}")
    PAGE.write_text(block.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
