"""Plays hostile answers of an endpoint through the real client, for as long as wanted.

Each answer is made from a valid one by a recipe that its seed decides, and played in a short run against a
server on 127.0.0.1. A recipe that causes an exception, a hang, a key in a file, a task wrongly counted as
safe or a run file that `verify` rejects is printed and kept as a file. Once fixed, move that file to
``tests/hostile/corpus``.

    .venv/bin/python perf/fuzz_endpoint.py --answers 500 --seed 0
"""

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile.endpoint_play import playing
from hostile.endpoint_recipes import recipe_of

EVERY = 100


def main() -> int:
    """Plays, and prints what was found; 1 if anything was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first answer")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the recipes of issues")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, playing(Path(folder)) as player:
        for number in range(arguments.answers):
            seed = arguments.seed + number
            recipe = recipe_of(seed)
            issues = player.issues(recipe)
            if issues:
                failed += 1
                path = arguments.out / f"endpoint-{seed}.json"
                path.write_bytes(msgspec.json.format(msgspec.json.encode(recipe), indent=2) + b"\n")
                print(f"seed {seed}: {'; '.join(issues)[:500]!r}; kept as {path}", flush=True)
            if (number + 1) % EVERY == 0:
                print(f"{number + 1} answers, {failed} with issues", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
