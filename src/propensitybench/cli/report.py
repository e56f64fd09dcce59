"""``propensitybench report``: an HTML report of run files."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.chat import Usage
from propensitybench.cli.runs import Source, comparable, read_sources
from propensitybench.cli.text import safe
from propensitybench.report.document import Journal, Provenance, provenance
from propensitybench.report.page_write import Runs, write_report


def command(
    files: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="A folder that does not exist yet, or that holds an earlier report.",
            show_default=False,
        ),
    ],
    transcripts: Annotated[
        Literal["all", "failed", "none"],
        typer.Option("--transcripts", help="Which get a page; failed: those in which the agent gave in."),
    ] = "all",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw the figures for a paper as well.")
    ] = True,
) -> None:
    sources = read_sources(files)
    runs = comparable(sources)
    for note in runs.notes:
        print(f"note: {safe(note)}", file=sys.stderr)
    found = Runs([_origin(source) for source in sources], runs.played, runs.notes)
    written = write_report(found, out, transcripts, figures=figures)
    count = "1 run" if len(sources) == 1 else f"{len(sources)} runs"
    print(f"{safe(str(written.page))}: {count}, {written.transcripts} transcripts")
    if transcripts != "none" and any(not isinstance(source.file, Path) for source in sources):
        print("the transcripts of Inspect logs are not among them: see inspect view", file=sys.stderr)


def _origin(source: Source) -> Path | Provenance:
    log = source.file
    if isinstance(log, Path):
        return log
    outcomes = [record.outcome for record in log.records]
    usage = Usage(*(sum(getattr(o.usage, part) for o in outcomes) for part in Usage.__struct_fields__))
    models = log.answered_by or Counter({"(not said)": sum(outcome.turns for outcome in outcomes)})
    journal = Journal(models, usage, stops={}, scenarios=log.scenarios, drawn=log.drawn)
    return provenance(source.played, source.manifest, journal)
