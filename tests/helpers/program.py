"""The program as a user calls it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from helpers.forking import TIMEOUT_S, call_forked


class Done(NamedTuple):
    """How a call of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON: exactly one value."""
        return json.loads(self.out)


def argv(*arguments: str | Path) -> list[str]:
    """The command line of a call."""
    program = "import sys; from propensitybench.cli import main; sys.argv[0] = 'propensitybench'; main()"
    return [sys.executable, "-c", program, *map(str, arguments)]


def in_terminal(*arguments: str | Path, **stdio: int) -> str:
    """What the program writes to a terminal; ``stdio`` takes streams away from it, as in `subprocess.Popen`.

    It must end with code 0.
    """
    import pty  # not on Windows

    terminal, program = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    streams: dict[str, Any] = {"stdout": program, "stderr": program, **stdio}
    process = subprocess.Popen(argv(*arguments), env=environment, **streams)
    os.close(program)
    shown = b""
    with suppress(OSError):  # the program has ended
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    assert process.wait() == 0
    return shown.decode()


def call(
    *arguments: str | Path, typed: str = "", cwd: Path | None = None, env: dict[str, str] | None = None
) -> Done:
    """Calls the program and waits for its end."""
    environment = {**os.environ, "COLUMNS": "120", **(env or {})}
    done = Done(*call_forked([str(argument) for argument in arguments], typed, cwd, environment))
    assert "Traceback" not in done.err, done.err
    return done


def hear_interrupts() -> None:
    """For `subprocess.Popen`: a child of tests that were started in the background hears SIGINT again."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def until(process: "subprocess.Popen[Any]", happened: Callable[[], object]) -> None:
    """Waits, without using the processor, until something is the case; the process has to run until then."""
    end = time.monotonic() + TIMEOUT_S
    while not happened():
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.003)
            assert happened(), process.communicate()
        assert time.monotonic() < end
