"""Builds the source distribution and the wheel of a commit into a folder.

It needs no network and changes nothing else; the same commit gives the same bytes in any folder.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).parents[1]
Kind = Literal["sdist", "wheel"]

# The build hooks of PEP 517, with the build tools that are installed here.
_HOOK: Final = (
    "import sys; from hatchling import build as b; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"
)


def commit_time() -> str:
    """The time of the commit in seconds, which the files in the archives get."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build(kind: Kind, source: Path, out: Path, time: str) -> Path:
    """Builds a distribution of a source folder; its path."""
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", _HOOK, kind, str(out.absolute())],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": time},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return out / done.stdout.split()[-1]


if __name__ == "__main__":
    print(build("sdist", ROOT, Path(sys.argv[1]), commit_time()))
    print(build("wheel", ROOT, Path(sys.argv[1]), commit_time()))
