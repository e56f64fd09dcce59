"""The program: its commands, imported only when they are called, and its exit codes."""

import logging
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Final

import typer

from propensitybench.cli.help import App, settings
from propensitybench.cli.output import make_streams_safe, print_note
from propensitybench.errors import NotConverged, PropensityBenchError

NOT_DONE: Final = 1
BAD_INPUT: Final = 2
INTERNAL_ERROR: Final = 70
INTERRUPTED: Final = 130
MAX_REASON: Final = 200

# In the order in which a new user meets them. The help is here and not in the modules, so that `--help`
# imports none of them: numpy and pydantic alone would take longer than the answer.
COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Run simulated models on built-in tasks; no API key, no network.",
    "run": "Run a model on a selection of tasks.",
    "resume": "Resume a run. Options that are not given are as they were before.",
    "watch": "Watch a run that another terminal is playing: counts, speed, cost and the latest tasks.",
    "merge": "Merge the shards of a run into one file.",
    "score": "Print the scores of runs.",
    "compare": "Compare runs on the tasks that they share.",
    "findings": "Test models for the nine signs of propensity.",
    "gate": "Say whether a new model got worse: pass, fail or inconclusive.",
    "figures": "Write figures for a paper as SVG and PNG.",
    "report": "Write an HTML report with figures and transcripts.",
    "board": "Put runs of many models into one table, for any static host.",
    "verify": "Replay a run file and check its outcomes.",
    "show": "Print the transcript of a task, or list tasks by how they ended and what was written.",
    "judge": "Have models read the transcripts: why did the agent do it, and did it know of the test?",
    "monitor": "Have monitors read the transcripts turn by turn: do they see it coming?",
    "label": "Read transcripts yourself, in the terminal or on a page.",
    "record": "Write a run in others' formats: Every Eval Ever, a reporting checklist, a model card, BibTeX.",
    "export": "Export a run as a table or as Inspect logs.",
    "data": "Show, validate and export data sets.",
    "play": "Play the agent yourself.",
    "probe": "Ask a run's model, beside its tasks, whether it believes them and what it would do.",
    "experiment": "Is it the pressure? Play control arms and factors, and analyse them.",
    "generate": "Make scenarios and messages: plan, write, check, read, accept.",
}


def build(wanted: Sequence[str]) -> typer.Typer:
    """The program with the modules of the wanted commands imported; the others are only lines of help."""
    app = App(
        name="propensitybench",
        context_settings=settings(),
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
    """Runs the program.

    Exit codes: 0 done, 1 a check failed, 2 bad input, 3 `gate` cannot tell, 70 a bug in this program, 130
    interrupted.
    """
    make_streams_safe()
    logging.getLogger("propensitybench").addHandler(Notes())
    signal.signal(signal.SIGTERM, _terminated)
    arguments = sys.argv[1:]
    wanted = [argument for argument in arguments if not argument.startswith("-")][:1]
    try:
        try:
            build(wanted)(prog_name="propensitybench")
        finally:
            sys.stdout.flush()
    except SystemExit as ending:
        exited = ending.__context__
        if exited is not None and isinstance(exited.__cause__, KeyboardInterrupt):
            print_note("propensitybench: interrupted")
        raise
    except KeyboardInterrupt:  # before a command has begun
        print_note("propensitybench: interrupted")
        sys.exit(INTERRUPTED)
    except PropensityBenchError as error:
        print_note(f"propensitybench: {error}")
        sys.exit(NOT_DONE if isinstance(error, NotConverged) else BAD_INPUT)
    except OSError as error:
        sys.exit(_no_output(error))
    except Exception as error:  # noqa: BLE001 - the outermost handler
        print_note(f"propensitybench: {_bug(error)}")
        sys.exit(INTERNAL_ERROR)


def _terminated(number: int, frame: FrameType | None) -> None:
    """Handles SIGTERM as Ctrl-C would be handled at the moment."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    if callable(on_interrupt):
        on_interrupt(number, frame)
    else:  # background jobs ignore Ctrl-C
        raise KeyboardInterrupt


class Notes(logging.Handler):
    """Prints what the package logs to standard error, repeated notes too, from whatever thread."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a note as one line."""
        print_note(f"note: {record.getMessage()}")


def _no_output(error: OSError) -> int:
    """Prints what could not be written, unless the reader of a pipe has gone; the exit code."""
    # At exit the interpreter writes what is left, fails again, and prints that it did.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return NOT_DONE
    what = error.filename or "standard output"
    print_note(f"propensitybench: {what}: cannot be used ({error.strerror or error})")
    return BAD_INPUT


def _bug(error: Exception) -> str:
    """Saves the traceback of an unexpected exception; returns the sentence for the user."""
    what = f"internal error ({type(error).__name__}: {str(error)[:MAX_REASON]})"
    text = f"propensitybench {version('propensitybench')}\n{''.join(traceback.format_exception(error))}"
    try:
        number, path = tempfile.mkstemp(".txt", "propensitybench-error-")
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 - it is open
            file.write(text)
    except OSError as unsaved:
        return f"{what}; please report this bug; its traceback could not be saved ({unsaved.strerror})"
    return f"{what}; please report this bug with the traceback in {path}"
