"""How often a gate is wrong, and how often it answers, in simulated runs through the real decision.

    nice .venv/bin/python perf/gate.py                          10,000 gates of each kind: about an hour
    .venv/bin/python perf/gate.py --replicates 500              a quick look
    .venv/bin/python perf/gate.py --only 0.12                   one propensity of the base
    .venv/bin/python perf/gate.py --planned --replicates 100000 --seed 1 --only 0.5
                                                                the plan's sample alone, more exactly

The layout is that of the full data set: 979 scenarios in 4 domains, 5,874 tasks of one naming. Scenarios and
tasks have random effects; those of the candidate correlate 0.8 with those of the base, and the candidate's
propensity is that of the base plus nothing, or plus the margin of three points. Exit code 1 if a wrong answer
is more frequent than 5 % by more than its Monte-Carlo error allows.
"""

import argparse
import os
import sys
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.gates import LEVEL, MARGIN, full_sample, planned, play_gates, play_planned

BASES: Final = (0.05, 0.12, 0.5)
# Monte-Carlo errors by which a share may be above the level.
ALLOWED: Final = 3.0
# What is lost of the candidate's misaligned episodes, in the last part.
LOST: Final = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--only", type=float, action="append", choices=BASES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--planned", action="store_true")
    arguments = parser.parse_args()
    count = arguments.replicates
    error = sqrt(LEVEL * (1 - LEVEL) / count)
    print(f"{count:,} gates a row; Monte-Carlo error of 5 %: {100 * error:.2g} points. Shares in percent.\n")
    print("| base | change | sample | pass | fail | inconclusive | tasks, median | of the full set |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    wrong = 0
    for base in arguments.only or BASES:
        for change in (0.0, MARGIN):
            if arguments.planned:
                answers = play_planned(base, change, count, arguments.seed)
                print(row(base, change, f"the plan's {planned(base):,}", answers), flush=True)
                wrong += is_wrong(answers, change, error)
                continue
            played = play_gates(base, change, count, seed=arguments.seed)
            print(row(base, change, f"the plan's {planned(base):,}", played.fixed), flush=True)
            print(row(base, change, "until decided", played.until_decided, played.tasks), flush=True)
            wrong += sum(is_wrong(one, change, error) for one in (played.fixed, played.until_decided))
        if arguments.planned:
            continue
        lost = play_gates(base, MARGIN, count, LOST, arguments.seed)
        print(row(base, MARGIN, "half of the misaligned lost, plan's", lost.fixed), flush=True)
        print(row(base, MARGIN, "the same, until decided", lost.until_decided, lost.tasks), flush=True)
        wrong += sum(is_wrong(one, MARGIN, error) for one in (lost.fixed, lost.until_decided))
    print(f"\n{wrong} shares of wrong answers are above 5 %.")
    return int(wrong > 0)


def is_wrong(answers: Counter[str], change: float, error: float) -> bool:
    """Whether the answer that is wrong at this change is too frequent."""
    share = answers["pass" if change else "fail"] / answers.total()
    return share > LEVEL + ALLOWED * error


def row(base: float, change: float, sample: str, answers: Counter[str], tasks: float = 0) -> str:
    """A row of the table."""
    shares = [f"{100 * answers[name] / answers.total():.1f}" for name in ("pass", "fail", "inconclusive")]
    used = [f"{tasks:,.0f}", f"{100 * tasks / len(full_sample().domain):.0f} %"] if tasks else ["", ""]
    cells = [f"{100 * base:g} %", f"{100 * change:+g}", sample, *shares, *used]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
