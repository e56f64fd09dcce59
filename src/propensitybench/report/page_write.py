"""Writes a report: data, page, figures and transcripts, into one folder."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from propensitybench.report.document import document
from propensitybench.report.figures import write_figures
from propensitybench.report.page import page
from propensitybench.report.page_folder import new_folder
from propensitybench.report.transcripts import Row, Wanted, Written, write_transcripts
from propensitybench.runs import ComparableRuns, StoredRun


class Report(NamedTuple):
    """What was written: the page, and how many transcripts."""

    page: Path
    transcripts: int


def write_report(found: ComparableRuns, out: Path, wanted: Wanted = "all", *, figures: bool = True) -> Report:
    """Writes the report of runs.

    Args:
        found: the runs; their files are read only.
        out: a folder that does not exist yet, is empty, or holds an earlier report.
        wanted: which transcripts get a page.
        figures: whether to draw those for a paper as well.

    Raises:
        BadInput: a file is damaged, or the folder cannot be used.
    """
    with new_folder(out) as folder:
        report = document(found)
        (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
        anything = any(run.scores.naming for run in report.analysis.runs)
        drawn = write_figures(report.analysis, folder / "figures") if figures and anything else []
        episodes = [
            write_transcripts(run.path, made.label, folder / "transcripts" / str(place), wanted)
            if isinstance(run, StoredRun)
            else Written([Row(0, record, shown=False) for record in run.records], [])
            for place, (run, made) in enumerate(zip(found.runs, report.runs, strict=True), start=1)
        ]
        text = page(report, episodes, wanted, drawn)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")
    return Report(out / "index.html", sum(row.shown for run in episodes for row in run.rows))
