"""The program: its commands, imported only when they are called, and its exit codes."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import typer

from propensitybench.errors import BadInput

NOT_DONE: Final = 1
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

# In the order in which a new user meets them. The help is here and not in the modules, so that `--help`
# imports none of them: numpy and pydantic alone would take longer than the answer.
COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Run simulated models on built-in tasks; no API key, no network.",
    "run": "Run a model on a selection of tasks.",
    "resume": "Resume a run.",
    "score": "Print the scores of runs.",
    "compare": "Compare runs on the tasks that they share.",
    "figures": "Write figures for a paper as SVG and PNG.",
    "report": "Write an HTML report with figures and transcripts.",
    "verify": "Replay a run file and check its outcomes.",
    "show": "Print the transcript of a task, or list the tasks.",
    "export": "Export a run as a table or as Inspect logs.",
    "data": "Show, validate and export data sets.",
    "play": "Play the agent yourself.",
}


def build(wanted: Sequence[str]) -> typer.Typer:
    """The program with the modules of the wanted commands imported; the others are only lines of help."""
    app = typer.Typer(
        name="propensitybench",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Given tools and pressure, would this model do what it was told not to do?",
    )
    app.callback()(_root)
    for name, text in COMMANDS.items():
        if name not in wanted:
            app.command(name, help=text)(_not_imported)
            continue
        module = import_module(f"propensitybench.cli.{name}")
        if isinstance(module.command, typer.Typer):
            app.add_typer(module.command, name=name, help=text)
        else:
            app.command(name, help=text)(module.command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"propensitybench {version('propensitybench')}")
        raise typer.Exit


def _root(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _not_imported() -> None:
    raise AssertionError("only commands that are called are imported")


def main() -> None:
    """Runs the program; the exit code is 0 done, 1 check failed, 2 bad input, 130 interrupted."""
    # A closed stream is None: `print` would raise, or write errors to standard output.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not every terminal can encode every file name
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _note
    arguments = sys.argv[1:]
    wanted = [argument for argument in arguments if not argument.startswith("-")][:1]
    try:
        try:
            build(wanted)(prog_name="propensitybench")
        finally:
            sys.stdout.flush()
    except BadInput as error:
        print(f"propensitybench: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        print("propensitybench: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:
        sys.exit(_no_output(error))


def _note(message: Warning | str, *_: object, **_named: object) -> None:
    """Prints a warning as one line."""
    from propensitybench.cli.text import safe

    print(f"note: {safe(str(message))}", file=sys.stderr)


def _no_output(error: OSError) -> int:
    """Prints what could not be written, unless the reader of a pipe has gone; the exit code."""
    # At exit the interpreter writes what is left, fails again, and prints that it did.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return NOT_DONE
    what = error.filename or "standard output"
    print(f"propensitybench: {what}: cannot be used ({error.strerror or error})", file=sys.stderr)
    return BAD_INPUT
