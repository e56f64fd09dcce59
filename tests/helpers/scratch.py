"""The program with every kind of waiting made short, as a command line and as a program on the PATH."""

import shlex
from pathlib import Path

from helpers.program import argv


def quick(*arguments: str | Path, copy_every: float = 1e9) -> list[str]:
    """The command line of a call; ``copy_every`` is how often a scratch copy is copied back, in seconds."""
    settings = (
        "from propensitybench.engine import local; from propensitybench.runs import scratch as s; "
        f"local.GRACE_S, s.COPY_EVERY_S, s.BEAT_S, s.POLL_S = 0.1, {copy_every}, 0.02, 0.02; "
    )
    program = argv(*arguments)
    return [program[0], "-c", settings + program[2], *program[3:]]


def install(folder: Path, **programs: str) -> None:
    """Puts ``propensitybench`` and further shell programs into a folder that can be on the PATH."""
    folder.mkdir()
    ours = f'exec {shlex.join(quick(copy_every=0.02))} "$@"'
    for name, text in {"propensitybench": ours, **programs}.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
