"""Programs on the PATH of a script."""

import shlex
import sys
from pathlib import Path

from helpers.program import argv


def install(folder: Path, **programs: str) -> None:
    """Puts ``propensitybench``, ``python3`` and further shell programs into a folder that can be on the PATH.

    After a stop, replies in flight have a tenth of a second to arrive.
    """
    folder.mkdir()
    python, option, program = argv()
    ours = [python, option, f"from propensitybench.engine import local; local.GRACE_S = 0.1; {program}"]
    texts = {"propensitybench": ours, "python3": [sys.executable]}
    lines = {name: f'exec {shlex.join(words)} "$@"' for name, words in texts.items()}
    for name, text in {**lines, **programs}.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
