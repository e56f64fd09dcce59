"""Writes a report: data, page, figures and transcripts, into one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from propensitybench.metrics.analysis import Played
from propensitybench.report.document import Provenance, document, read_provenance
from propensitybench.report.figures import write_figures
from propensitybench.report.page import page
from propensitybench.report.page_folder import new_folder
from propensitybench.report.transcripts import Row, Wanted, Written, write_transcripts


class Report(NamedTuple):
    """What was written: the page, and how many transcripts."""

    page: Path
    transcripts: int


class Runs(NamedTuple):
    """Runs to report on.

    Attributes:
        files: the run file of each, or, where there is none with its replies, how it was made; such a
            run has no transcripts.
        played: their episodes, in the same order.
        notes: on their differences.
    """

    files: Sequence[Path | Provenance]
    played: Sequence[Played]
    notes: Sequence[str]


def write_report(runs: Runs, out: Path, wanted: Wanted = "all", *, figures: bool = True) -> Report:
    """Writes the report of runs.

    Args:
        runs: the files are read only.
        out: a folder that does not exist yet, is empty, or holds an earlier report.
        wanted: which transcripts get a page.
        figures: whether to draw those for a paper as well.

    Raises:
        BadInput: a file is damaged, or the folder cannot be used.
    """
    with new_folder(out) as folder:
        origins = [file if isinstance(file, Provenance) else read_provenance(file) for file in runs.files]
        report = document(runs.played, origins, runs.notes)
        (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
        anything = any(run.scores.naming for run in report.analysis.runs)
        drawn = write_figures(report.analysis, folder / "figures") if figures and anything else []
        episodes = [
            write_transcripts(file, made.label, folder / "transcripts" / str(place), wanted)
            if isinstance(file, Path)
            else Written([Row(0, record, shown=False) for record in played.records], [])
            for place, (file, made, played) in enumerate(
                zip(runs.files, report.runs, runs.played, strict=True), start=1
            )
        ]
        text = page(report, episodes, wanted, drawn)
        (folder / "index.html").write_text(text, encoding="utf-8", newline="\n")
    return Report(out / "index.html", sum(row.shown for run in episodes for row in run.rows))
