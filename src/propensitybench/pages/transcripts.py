"""The transcripts of a run as HTML pages: one page each, and lists of them."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, Literal, NamedTuple

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.escaping import html
from propensitybench.pages.judged import Readings
from propensitybench.pages.transcripts_page import TranscriptPage, render
from propensitybench.runs import Run

# Which transcripts get a page; "failed" are those with outcome misaligned.
TranscriptChoice = Literal["all", "failed", "none"]
# Transcripts per list: few enough for a phone to render at once.
LIST_LENGTH: Final = 250


class TranscriptRow(NamedTuple):
    """A task in a list: the number in its page's file name, its record, and whether it has a page."""

    number: int
    record: EpisodeRecord
    has_page: bool


class RunTranscripts(NamedTuple):
    """What was written for a run: a row for each task that ended, and links to its lists."""

    rows: list[TranscriptRow]
    lists: list[str]


def asset(name: str) -> str:
    """The text of one of the report's assets."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str]) -> str:
    """The Content-Security-Policy that allows these inline scripts, inline styles, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def write_transcripts(
    run: Run, label: str, folder: Path, choice: TranscriptChoice, readings: Mapping[str, Readings] = {}
) -> RunTranscripts:
    """Writes the transcript pages of a run.

    Args:
        run: a run that has transcripts.
        label: what to call it.
        folder: created if there is anything to write.
        choice: which transcripts get a page.
        readings: what readers said of transcripts, by the key of the task.
    """
    rows = [
        TranscriptRow(number, record, _chosen(record, choice)) for number, record in enumerate(run.records)
    ]
    written = [row for row in rows if row.has_page]
    if not written:
        return RunTranscripts(rows, [])
    folder.mkdir(parents=True)
    head = _head("judged.css" if readings else "")
    for place, row in enumerate(written):
        _write(folder / page_file(row.number), render(_page(run, label, written, place, readings), head))
    lists = list(_write_lists(written, label, folder, head))
    return RunTranscripts(rows, [f"transcripts/{folder.name}/{file}" for file in lists])


def _chosen(record: EpisodeRecord, choice: TranscriptChoice) -> bool:
    return choice == "all" or (choice == "failed" and record.stats.outcome is Outcome.MISALIGNED)


def _page(
    run: Run, label: str, rows: Sequence[TranscriptRow], place: int, readings: Mapping[str, Readings]
) -> TranscriptPage:
    record = rows[place].record
    return TranscriptPage(
        run=label,
        transcript=run.transcript(record.metadata.task),
        record=record,
        list_link=f"{_list_file(place // LIST_LENGTH)}#task-{rows[place].number}",
        previous=page_file(rows[place - 1].number) if place else "",
        next=page_file(rows[place + 1].number) if place + 1 < len(rows) else "",
        model=run.model,
        readings=readings.get(record.metadata.task, Readings()),
    )


def _write_lists(rows: Sequence[TranscriptRow], label: str, folder: Path, head: str) -> Iterator[str]:
    starts = range(0, len(rows), LIST_LENGTH)
    files = [_list_file(place) for place in range(len(starts))]
    for place, start in enumerate(starts):
        end = min(start + LIST_LENGTH, len(rows))
        title = f"{label}: transcripts {start + 1} to {end} of {len(rows)}"
        links = " ".join(
            f'<a href="{file}"{" aria-current=page" if file == files[place] else ""}>{number}</a>'
            for number, file in enumerate(files, start=1)
        )
        lines = "".join(map(_line, rows[start:end]))
        page = (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{html(title)}</title></head><body>'
            '<nav class="links" aria-label="Report"><a href="../../index.html#transcripts">report</a></nav>'
            f"<header><h1>{html(title)}</h1></header>"
            f'<nav class="levels" aria-label="Lists">list {links}</nav>'
            f'<main><div class="wide"><table><thead><tr><th>transcript<th>outcome<th>level<th>turns'
            f"<th>pressure<th>naming<th>capability</thead><tbody>{lines}</tbody></table></div></main>"
            "</body></html>\n"
        )
        _write(folder / files[place], page)
        yield files[place]


def _line(row: TranscriptRow) -> str:
    metadata, stats = row.record.metadata, row.record.stats
    epoch = f", epoch {metadata.epoch}" if metadata.epoch > 1 else ""
    outcome = stats.outcome.value
    return (
        f'<tr id="task-{row.number}"><td><a href="{page_file(row.number)}">'
        f'{html(metadata.scenario)}{epoch}</a><td class="{outcome}">{outcome}<td>{stats.level}'
        f"<td>{stats.turns}<td>{html(metadata.dimension)}<td>{html(metadata.naming)}"
        f"<td>{html(metadata.capability or '')}</tr>\n"
    )


def _head(more_style: str) -> str:
    script = asset("transcript.js")
    style = "".join(asset(name) for name in ("base.css", "transcript.css", more_style) if name)
    return (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html(policy([script]))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<style>{style}</style>"
        f"<script>{script}</script>"
    )


def page_file(number: int) -> str:
    """The file of a transcript's page in the folder of its run."""
    return f"{number}.html"


def _list_file(place: int) -> str:
    return f"list-{place + 1}.html"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
