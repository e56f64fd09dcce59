"""``propensitybench generate write``: texts by a model, or by people."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import EXIT
from propensitybench.cli.output import print_note
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.generation.drafts import take_drafts
from propensitybench.generation.estimate import estimate
from propensitybench.generation.run import Models, WritingProgress, WritingResult, write
from propensitybench.generation.workfolder import SET_ASIDE, WorkFolder
from propensitybench.presentation.formats import dollars
from propensitybench.presentation.progress import Bar, Stage
from propensitybench.runs.resolve import RunSettings, read_settings
from propensitybench.runs.settings import Settings

NOT_DONE: Final = 1
Work = Annotated[Path, typer.Argument(metavar="WORK", help="A working folder.", show_default=False)]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", metavar="MODEL", help="A model that reads each text as it is written; may be repeated."
    ),
]


@options.takes("base_url", *options.MODEL, *options.LIMITS, concurrency="Requests in flight.  [default: 16]")
def command(
    work: Work,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The writer, e.g. openai/o4-mini.")
    ] = None,
    judge: Judges = None,
    drafts: Annotated[
        Path | None,
        typer.Option("--drafts", metavar="DIR", help="Take role files and storylines that people wrote."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also write again what was set aside or failed the last check.")
    ] = False,
    *,
    settings: Settings,
    plan: options.CostOnly = False,
    as_json: options.AsJson = False,
) -> None:
    """Write what is missing with a model, or take texts that people wrote; resumes where it was stopped."""
    must_be_utf8({"WORK": work, "--model": model, "--drafts": drafts})
    if (model is None) == (drafts is None):
        raise BadInput("generate write: give either --model, if a model writes, or --drafts, if people wrote")
    if drafts is not None:
        raise typer.Exit(_take(work, drafts, as_json=as_json))
    spec, execution = settings_of(model or "", settings, 16)
    models = Models(
        spec.model, tuple(judge or ()), spec.options, execution.transport, execution.budget, execution.price
    )
    if plan:
        _print_estimate(work, models, as_json=as_json)
        return
    raise typer.Exit(write_texts(work, models, again=again, as_json=as_json))


def settings_of(model: str, settings: Settings, concurrency: int) -> RunSettings:
    """The settings of a model that writes or reads; ``concurrency`` is that unless it was typed."""
    if len(settings.get("base_url") or ()) > 1:
        raise BadInput("--base-url: give it once; texts come from one endpoint")
    return read_settings(model, {"concurrency": concurrency, **settings})


def _print_estimate(path: Path, models: Models, *, as_json: bool) -> None:
    found = estimate(WorkFolder(path), models)
    if as_json:
        print_json(found)
        return
    print(f"texts to write: {found.texts:,}, organisations and sketches included")
    print(f"calls:          {found.calls[0]:,} to {found.calls[1]:,}")
    print(f"input tokens:   {found.input_tokens[0]:,} to {found.input_tokens[1]:,}")
    print(f"output tokens:  {found.output_tokens[0]:,} to {found.output_tokens[1]:,}, without reasoning")
    if found.usd is None:
        print("cost:           unknown, the price table does not list every model; give --price IN,OUT")
    else:
        print(f"cost:           ${found.usd[0]:,.2f} to ${found.usd[1]:,.2f}")
    print("basis:          every text right at once (low), or only at the last of four rounds (high)")


def write_texts(path: Path, models: Models, *, again: bool, as_json: bool) -> int:
    """Writes what is missing; the exit code."""
    work = WorkFolder(path)
    with Bar(models.writer, keep=True) as bar:

        def advance(now: WritingProgress) -> None:
            note = f"{now.calls} calls; {now.tokens / 1e6:.2f}M tokens, {dollars(now.usd)}"
            bar.update(Stage(models.writer, now.finished, now.total, note=note))

        written = result_until_stopped(
            lambda stop: write(work, models, again=again, on_progress=advance, stop=stop)
        )
    _print_written(work, written, as_json=as_json)
    if written.stop.cause is not None:
        return EXIT[written.stop.cause]
    return NOT_DONE if work.asides() else 0


def _print_written(work: WorkFolder, written: WritingResult, *, as_json: bool) -> None:
    stop, asides = written.stop, work.asides()
    if as_json:
        about: dict[str, Any] = {name: getattr(written, name) for name in written._fields[:-1]}
        print_json(about | {"stopped": stop.cause.value if stop.cause else None, "all_aside": len(asides)})
    else:
        print(f"{written.written} texts written, {written.aside} set aside, {written.calls} calls")
        if any(written.unusable.values()):
            counted = (f"{number} {kind}" for kind, number in written.unusable.items() if number)
            print(f"replies that held no text: {', '.join(counted)}")
    for file, aside in asides.items():
        print_note(f"set aside: {file}: {aside.reasons[0] if aside.reasons else 'no reason given'}")
    if stop.cause is not None:
        print_note(f"stopped: {stop.reason}")
        print_note("no reply is lost; resume with the same command")
    elif asides:
        print_note(f"all reasons are in {file_name(work.root / SET_ASIDE)}; write these again with --again")


def _take(path: Path, drafts: Path, *, as_json: bool) -> int:
    """Takes drafts of people over; the exit code."""
    taken = take_drafts(WorkFolder(path), drafts)
    if as_json:
        print_json({"texts": taken.texts, "issues": [issue._asdict() for issue in taken.issues]})
    else:
        for issue in taken.issues:
            print(issue)
        print(f"{taken.texts} texts taken over, {len(taken.issues)} issues in the others")
    return NOT_DONE if taken.issues else 0
