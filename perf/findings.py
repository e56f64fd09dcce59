"""How often the verdicts of `findings` are right, on simulated models of known signs: docs/findings.md.

    .venv/bin/python perf/findings.py                     all tables, one process, about ten minutes
    .venv/bin/python perf/findings.py --replicates 50     a quick look
    .venv/bin/python perf/findings.py --write             also replace the tables of docs/findings.md

Exit code 1 if a wrong verdict in a model is more frequent than 5 % by more than its Monte-Carlo error allows.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
from helpers.signs import WORLDS, index_verdict, verdicts, wrong  # noqa: E402
from scipy.stats import binom  # noqa: E402

from propensitybench.metrics.signs.verdicts import Verdict  # noqa: E402

PAGE: Final = ROOT / "docs" / "findings.md"
RHOS: Final = (0.0, 0.3, -0.3, 0.7)
MODELS: Final = (30, 60, 200)
VERDICTS: Final[Sequence[Verdict]] = ("shown", "not shown", "cannot tell yet")


def main() -> int:
    """Prints the tables; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replicates", type=int, default=250)
    parser.add_argument("--only", action="append", choices=list(WORLDS), help="a world; may be repeated")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write replaces whole tables: leave out --only")
    sheets = {
        "worlds": _worlds(given.only or list(WORLDS), given.replicates),
        "correlation": _correlations(4 * given.replicates),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, (rows, _) in sheets.items():
        table = "\n".join(_markdown(rows))
        print(table, end="\n\n")
        block = f"<!-- begin: {name} -->\n{table}\n<!-- end -->"
        before, _, rest = page.partition(f"<!-- begin: {name} -->")
        page = before + block + rest.partition("<!-- end -->")[2]
    if given.write:
        PAGE.write_text(page, encoding="utf-8")
    return 0 if all(good for _, good in sheets.values()) else 1


def _worlds(names: Sequence[str], replicates: int) -> tuple[list[Sequence[str]], bool]:
    rows: list[Sequence[str]] = [
        ("world", "models", "sign", "truth", *VERDICTS, "wrong in a model: shown", "not shown")
    ]
    good = True
    for name in names:
        world = WORLDS[name]
        counts: dict[str, Counter[Verdict]] = {}
        errors: Counter[str] = Counter()
        for seed in range(replicates):
            found = verdicts(world, np.random.default_rng([seed, 5]))
            for sign, verdict in found.items():
                counts.setdefault(sign, Counter())[verdict] += 1
            errors.update(kind for kind, signs in wrong(world, found).items() if signs)
        for place, (sign, seen) in enumerate(counts.items()):
            shares = [_percent(seen[one], seen.total()) for one in VERDICTS]
            family = [_percent(errors[kind], replicates) for kind in VERDICTS[:2]] if not place else ["", ""]
            head = (name, str(replicates)) if not place else ("", "")
            rows.append((*head, sign, f"{100 * world.truth[sign]:.1f}", *shares, *family))
        good &= all(errors[kind] <= binom.ppf(0.999, replicates, 0.05) for kind in VERDICTS[:2])
        print(f"{name} done", file=sys.stderr)
    return rows, good


def _correlations(replicates: int) -> tuple[list[Sequence[str]], bool]:
    rows: list[Sequence[str]] = [("correlation", "models", *VERDICTS)]
    good = True
    for rho in RHOS:
        for models in MODELS:
            seen = Counter(
                index_verdict(rho, models, np.random.default_rng([seed, models]))
                for seed in range(replicates)
            )
            rows.append((f"{rho:g}", str(models), *(_percent(seen[one], replicates) for one in VERDICTS)))
            false: Verdict = "not shown" if abs(rho) < 0.3 else "shown"
            good &= seen[false] <= binom.ppf(0.999, replicates, 0.05)
    return rows, good


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.1f}"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]


if __name__ == "__main__":
    sys.exit(main())
