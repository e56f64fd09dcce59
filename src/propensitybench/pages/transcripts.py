"""The transcripts of a run as HTML pages, one for each task."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.pages.judged import Readings
from propensitybench.pages.template import asset, render
from propensitybench.pages.transcripts_page import TranscriptPage, transcript_view
from propensitybench.runs import Run

# Which transcripts get a page; "failed" are those with outcome misaligned.
TranscriptChoice = Literal["all", "failed", "none"]
# The style of all transcripts of a report, in a file of its own beside their folders.
STYLE: Final = "style.css"
_STYLES: Final = ("base.css", "transcript.css", "judged.css")


class TranscriptRow(NamedTuple):
    """A task that ended, and the file of its page; empty if it has none."""

    record: EpisodeRecord
    file: str


def write_transcripts(
    run: Run,
    label: str,
    folder: Path,
    choice: TranscriptChoice | Collection[str],
    readings: Mapping[str, Readings] = {},
    on_page: Callable[[], None] = lambda: None,
) -> list[TranscriptRow]:
    """Writes the transcript pages of a run; a row for each of its tasks that ended.

    Args:
        run: a run; Inspect logs have a viewer of their own, and so no pages.
        label: what to call it.
        folder: created if there is anything to write.
        choice: which transcripts get a page; or the keys of their tasks.
        readings: what readers said of transcripts, by the key of the task.
        on_page: is called after each page.
    """
    rows = [
        TranscriptRow(record, f"{number}.html" if _has_page(run, record, choice) else "")
        for number, record in enumerate(run.records)
    ]
    written = [row for row in rows if row.file]
    if written:
        folder.mkdir(parents=True)
        _write(folder.parent / STYLE, "".join(map(asset, _STYLES)))
    files = [row.file for row in written]
    neighbours = zip(written, ["", *files], [*files[1:], ""], strict=False)
    for row, previous, following in neighbours:
        task = row.record.metadata.task
        page = TranscriptPage(
            label,
            run.transcript(task),
            row.record,
            previous,
            following,
            run.model,
            readings.get(task, Readings()),
        )
        _write(folder / row.file, render_transcript(page))
        on_page()
    return rows


def count_pages(run: Run, choice: TranscriptChoice) -> int:
    """The number of transcript pages of a run."""
    return sum(_has_page(run, record, choice) for record in run.records)


def render_transcript(page: TranscriptPage) -> str:
    """The HTML of a transcript's page."""
    return render("transcript.html.j2", scripts=("transcript.js",), styles=None, page=transcript_view(page))


def _has_page(run: Run, record: EpisodeRecord, choice: TranscriptChoice | Collection[str]) -> bool:
    if isinstance(choice, str):
        chosen = choice == "all" or (choice == "failed" and record.stats.outcome is Outcome.MISALIGNED)
    else:
        chosen = record.metadata.task in choice
    return chosen and run.has_transcripts


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
