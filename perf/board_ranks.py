"""How often the intervals of all ranks of a board contain all true ranks, in simulated boards.

    .venv/bin/python perf/board_ranks.py                     1,000 boards of each setting
    .venv/bin/python perf/board_ranks.py --replicates 100    a quick look

About half an hour on two idle cores. Exit code 1 if a coverage is below 95 % by more than three
Monte-Carlo errors.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.rank_coverage import SETTINGS, coverage  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    low = 0
    print("| board | all true ranks covered | mean length of an interval |\n| --- | --- | --- |")
    with ProcessPoolExecutor(arguments.processes) as pool:
        found = pool.map(coverage, SETTINGS, [arguments.replicates] * len(SETTINGS))
        for setting, one in zip(SETTINGS, found, strict=True):
            print(f"| {setting.name} | {100 * one.share:.1f} | {one.length:.1f} of 8 |", flush=True)
            low += one.share < 0.95 - 3 * one.error
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main())
