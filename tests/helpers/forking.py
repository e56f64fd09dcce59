"""Calls the program in processes of their own, without importing it each time.

A server process imports the program once and forks for every call. ``python -m helpers.forking`` is that
server: it reads one call per line from standard input and writes two lines: process id and exit code.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final

TIMEOUT_S: Final = 120
# The variable with a file that stands in for the mount table in a call.
MOUNT_TABLE: Final = "TEST_MOUNT_TABLE"
# With every module of the command line, what its commands import when they run.
PRELOADED: Final = (
    "email.parser",
    "propensitybench.clients.openai_chat",
    "propensitybench.curation.validate",
    "propensitybench.experiments.simulation",
    "propensitybench.pressure.export",
    "propensitybench.pages.figures",
    "propensitybench.pages.page_write",
    "scipy.optimize",
    "scipy.stats",
)


def call_forked(
    arguments: Sequence[str],
    typed: str,
    cwd: Path | None,
    env: Mapping[str, str],
    begun: Callable[[int], object] = lambda _: None,
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a call; ``begun`` gets its process id meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [str(Path(folder, name)) for name in ("in", "out", "err")]
        Path(streams[0]).write_text(typed, encoding="utf-8")
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        order = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": dict(env), "streams": streams}
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        begun(int(server.stdout.readline()))
        code = int(server.stdout.readline())
        out, err = (Path(stream).read_text(encoding="utf-8") for stream in streams[1:])
    return code, out, err


@cache
def _server() -> "subprocess.Popen[str]":
    server = subprocess.Popen(
        [sys.executable, "-m", "helpers.forking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    def stop() -> None:
        server.communicate()

    atexit.register(stop)
    return server


def _child(order: Mapping[str, Any]) -> None:
    """Becomes the program; does not return."""
    signal.alarm(TIMEOUT_S)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    if table := os.environ.pop(MOUNT_TABLE, None):
        vars(import_module("propensitybench.store.filesystems"))["MOUNT_TABLE"] = Path(table)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (stream, mode) in enumerate(zip(order["streams"], modes, strict=True)):
        os.dup2(os.open(stream, mode, 0o600), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    sys.argv = ["propensitybench", *order["arguments"]]
    from propensitybench.cli import main

    try:
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - what the interpreter would print
        sys.excepthook(*sys.exc_info())
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Serves until standard input is closed."""
    commands = import_module("propensitybench.cli")
    for module in iter_modules(commands.__path__, "propensitybench.cli."):
        import_module(module.name)
    for name in PRELOADED:
        import_module(name)
    import_module("propensitybench.scenarios").read_dataset()  # kept for every call
    gc.set_threshold(50_000, 20, 20)
    for line in sys.stdin:
        order = json.loads(line)
        if "eval" in order["arguments"]:  # Inspect takes seconds, and most tests do not need it
            import_module("propensitybench.inspect_adapter.eval_export")
        gc.freeze()  # a child that collects garbage would walk, and so copy, all that is loaded
        pid = os.fork()
        if pid == 0:
            _child(order)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
