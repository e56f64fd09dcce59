"""Writes a report into a folder: data, page, figures and transcripts."""

import os
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.escaping import json_document
from propensitybench.pages.document import document
from propensitybench.pages.figures import write_figures
from propensitybench.pages.figures.monitors import lead_drawings
from propensitybench.pages.figures.writing import write_drawings
from propensitybench.pages.judged import answers_in, judged_question, readings_of
from propensitybench.pages.page import render_page
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.publishing import PublishableRun
from propensitybench.pages.transcripts import TranscriptChoice, count_pages, write_transcripts
from propensitybench.pages.watched import watched
from propensitybench.presentation.formats import counted
from propensitybench.presentation.progress import OnStage, Stages, shown_stages
from propensitybench.runs import ComparableRuns, comparable
from propensitybench.runs.read import Runs, runs_of

# About how many seconds each part takes, by task where there are tasks; only their proportions matter.
SCORES_S: Final = 0.004
FIGURES_S: Final = 2.5
TRANSCRIPT_S: Final = 0.01
PAGE_S: Final = 0.5


class WrittenReport(NamedTuple):
    """A written report.

    Attributes:
        page: the path of its page.
        runs: their number.
        transcripts: number of transcripts.
        notes: what a reader of it has to know.
    """

    page: Path
    runs: int
    transcripts: int
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{self.page}: {counted(self.runs, 'run')}, {counted(self.transcripts, 'transcript')}"


def report(
    runs: Runs,
    folder: str | os.PathLike[str],
    *,
    transcripts: TranscriptChoice = "all",
    figures: bool = True,
    publishable: bool = False,
    on_progress: OnStage | None = None,
) -> WrittenReport:
    """Writes a page about runs that works offline, with figures and transcripts.

    Args:
        runs: one or more, or their files or folders, which are only read.
        folder: does not exist yet, is empty, or holds an earlier report, which is replaced.
        transcripts: ``all``, ``failed`` (those of tasks that ended misaligned) or ``none``.
        figures: whether to draw figures: in the page, and as SVG files for papers.
        publishable: leaves out what names your machine or people: folders, addresses of endpoints, texts of
            errors, readers of transcripts.
        on_progress: is told each stage; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: a run cannot be read, runs cannot be compared, or the folder cannot be used.
    """
    given = runs_of(runs)
    found = comparable([PublishableRun(run) for run in given] if publishable else given)
    notes = list(found.notes)
    if transcripts != "none" and not all(run.has_transcripts for run in found.runs):
        notes.append("transcripts of Inspect logs are not included; use `inspect view`")
    page, pages = write_report(found, Path(folder), transcripts, figures=figures, on_progress=on_progress)
    return WrittenReport(page, len(found.runs), pages, tuple(notes))


def write_report(
    comparable: ComparableRuns,
    out: Path,
    choice: TranscriptChoice = "all",
    *,
    figures: bool = True,
    board: str = "",
    on_progress: OnStage | None = None,
) -> tuple[Path, int]:
    """Writes the report of comparable runs; returns the page's path and the number of transcripts.

    Args:
        comparable: the runs; their files are only read.
        out: a folder that does not exist yet, is empty, or holds an earlier report, which is replaced.
        choice: which transcripts get a page.
        figures: whether to draw figures: in the page, and as SVG files for papers.
        board: address of the board that the report belongs to, from its folder; empty if to none.
        on_progress: is told each stage; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: a run file is damaged, or the folder cannot be used.
    """
    tasks = sum(len(run.records) for run in comparable.runs)
    pages, written = sum(count_pages(run, choice) for run in comparable.runs), count(1)
    lengths = {
        "scores": SCORES_S * tasks,
        "figures": FIGURES_S if figures else 0.0,
        "transcripts": TRANSCRIPT_S * pages,
        "page": PAGE_S,
    }
    with new_folder(out) as folder, shown_stages("report", on_progress) as tell:
        parts = Stages(tell, lengths)
        parts.at("scores")
        answers = [answers_in(run) for run in comparable.runs]
        judged = [judged_question(run, one) for run, questions in enumerate(answers) for one in questions]
        report = document(comparable, judged, watched(list(comparable.runs)))
        (folder / "report.json").write_text(json_document(report), encoding="utf-8", newline="\n")
        parts.at("figures")
        any_scores = any(run.scores.naming for run in report.analysis.runs)
        drawn = []
        if figures and any_scores:
            told = partial(parts.at, "figures")
            drawn = write_figures(report.analysis, folder / "figures", ("svg",), on_figure=told)
            read = [(report.runs[one.run].label, one.results) for one in report.watched]
            drawn += write_drawings(lead_drawings(read), folder / "figures", ("svg",))
        transcripts = [
            write_transcripts(
                run,
                made.label,
                folder / "transcripts" / str(number),
                choice,
                readings_of(answers[number - 1]),
                lambda: parts.at("transcripts", next(written), pages),
            )
            for number, (run, made) in enumerate(zip(comparable.runs, report.runs, strict=True), start=1)
        ]
        parts.at("page")
        html = render_page(report, transcripts, choice, drawn, board)
        (folder / "index.html").write_text(html, encoding="utf-8", newline="\n")
    return (out / "index.html", sum(bool(row.file) for rows in transcripts for row in rows))
