"""Writes a report into a folder: data, page, figures and transcripts."""

from pathlib import Path
from typing import NamedTuple

from propensitybench.escaping import json_document
from propensitybench.pages.document import document
from propensitybench.pages.figures import write_figures
from propensitybench.pages.judged import answers_in, judged_question, readings_of
from propensitybench.pages.page import render_page
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.transcripts import Row, RunTranscripts, TranscriptChoice, write_transcripts
from propensitybench.runs import ComparableRuns


class Report(NamedTuple):
    """A written report: the path of its page, and the number of transcripts."""

    page: Path
    transcripts: int


def write_report(
    comparable: ComparableRuns,
    out: Path,
    choice: TranscriptChoice = "all",
    *,
    figures: bool = True,
    board: str = "",
) -> Report:
    """Writes the report of runs.

    Args:
        comparable: the runs; their files are only read.
        out: a folder that does not exist yet, is empty, or holds an earlier report, which is replaced.
        choice: which transcripts get a page.
        figures: whether to draw the figures for papers as well.
        board: address of the board that the report belongs to, from its folder; empty if to none.

    Raises:
        BadInput: a run file is damaged, or the folder cannot be used.
    """
    with new_folder(out) as folder:
        answers = [answers_in(run) for run in comparable.runs]
        judged = [judged_question(run, one) for run, questions in enumerate(answers) for one in questions]
        report = document(comparable, judged)
        (folder / "report.json").write_text(json_document(report), encoding="utf-8", newline="\n")
        any_scores = any(run.scores.naming for run in report.analysis.runs)
        drawn = write_figures(report.analysis, folder / "figures") if figures and any_scores else []
        transcripts = [
            write_transcripts(
                run,
                made.label,
                folder / "transcripts" / str(number),
                choice,
                readings_of(answers[number - 1]),
            )
            if run.has_transcripts  # Inspect logs have a viewer of their own
            else RunTranscripts([Row(0, record, has_page=False) for record in run.records], [])
            for number, (run, made) in enumerate(zip(comparable.runs, report.runs, strict=True), start=1)
        ]
        html = render_page(report, transcripts, choice, drawn, board)
        (folder / "index.html").write_text(html, encoding="utf-8", newline="\n")
    return Report(out / "index.html", sum(row.has_page for run in transcripts for row in run.rows))
