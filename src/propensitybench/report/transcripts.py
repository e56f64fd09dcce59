"""The transcripts of a run as HTML pages: one page each, and lists of them."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, Literal, NamedTuple

from propensitybench.episode import EpisodeRecord, Outcome, replay
from propensitybench.report.transcripts_page import ENDINGS, Shown, transcript_page
from propensitybench.report.transcripts_text import html
from propensitybench.store import NumberedTask, RunFile

Wanted = Literal["all", "failed", "none"]
# A list that a phone still shows at once.
A_PAGE: Final = 250


class Row(NamedTuple):
    """An episode in a list: its number in the run file, its record, and whether it has a page."""

    number: int
    record: EpisodeRecord
    shown: bool


class Written(NamedTuple):
    """What was written of a run: every episode, and the addresses of its lists below the report."""

    rows: list[Row]
    lists: list[str]


def asset(name: str) -> str:
    """A file of the report's assets."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str]) -> str:
    """The Content-Security-Policy of a page: these inline scripts, inline styles, and nothing else."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def write_transcripts(path: Path, name: str, folder: Path, wanted: Wanted) -> Written:
    """Writes the pages of a run's transcripts.

    Args:
        path: the run file.
        name: what to call the run.
        folder: where to; made if there is anything to write.
        wanted: all of them, only those in which the agent gave in, or none.
    """
    with RunFile.open(path) as run:
        records = {record.metadata.task: record for record in run.records()}
        rows = []
        tasks = []
        for task in run.tasks():
            record = records.get(task.task.key)
            if record is None:
                continue
            shown = wanted == "all" or (wanted == "failed" and record.stats.outcome is Outcome.MISALIGNED)
            rows.append(Row(task.number, record, shown))
            if shown:
                tasks.append(task)
        if not tasks:
            return Written(rows, [])
        folder.mkdir(parents=True)
        head = _head()
        _write_pages(run, name, tasks, records, folder, head)
    lists = list(_write_lists([row for row in rows if row.shown], name, folder, head))
    return Written(rows, [f"transcripts/{folder.name}/{file}" for file in lists])


def _write_pages(
    run: RunFile,
    name: str,
    tasks: Sequence[NumberedTask],
    records: dict[str, EpisodeRecord],
    folder: Path,
    head: str,
) -> None:
    for place, task in enumerate(tasks):
        shown = Shown(
            run=name,
            episode=replay(run.job(task)).episode,
            record=records[task.task.key],
            listed=f"{_list(place // A_PAGE)}#task-{task.number}",
            previous=_page(tasks[place - 1].number) if place else "",
            next=_page(tasks[place + 1].number) if place + 1 < len(tasks) else "",
        )
        _write(folder / _page(task.number), transcript_page(shown, head))


def _write_lists(rows: Sequence[Row], name: str, folder: Path, head: str) -> Iterator[str]:
    starts = range(0, len(rows), A_PAGE)
    files = [_list(place) for place in range(len(starts))]
    for place, start in enumerate(starts):
        title = f"{name}: transcripts {start + 1} to {min(start + A_PAGE, len(rows))} of {len(rows)}"
        others = " ".join(
            f'<a href="{file}"{" aria-current=page" if file == files[place] else ""}>{number}</a>'
            for number, file in enumerate(files, start=1)
        )
        lines = "".join(map(_line, rows[start : start + A_PAGE]))
        page = (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{html(title)}</title></head><body>'
            '<nav class="ways" aria-label="Report"><a href="../../index.html#transcripts">report</a></nav>'
            f"<header><h1>{html(title)}</h1></header>"
            f'<nav class="levels" aria-label="Lists">list {others}</nav>'
            f'<main><div class="wide"><table><thead><tr><th>transcript<th>outcome<th>level<th>turns'
            f"<th>pressure<th>naming<th>capability</thead><tbody>{lines}</tbody></table></div></main>"
            "</body></html>\n"
        )
        _write(folder / files[place], page)
        yield files[place]


def _line(row: Row) -> str:
    metadata, stats = row.record.metadata, row.record.stats
    epoch = f", epoch {metadata.epoch}" if metadata.epoch > 1 else ""
    return (
        f'<tr id="task-{row.number}"><td><a href="{_page(row.number)}">{html(metadata.scenario)}{epoch}</a>'
        f'<td class="{stats.outcome.value}">{ENDINGS[stats.outcome]}<td>{stats.level}<td>{stats.turns}'
        f"<td>{html(metadata.dimension)}<td>{html(metadata.naming)}"
        f"<td>{html(metadata.capability or '')}</tr>\n"
    )


def _head() -> str:
    script = asset("transcript.js")
    return (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html(policy([script]))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<style>{asset('base.css')}{asset('transcript.css')}</style>"
        f"<script>{script}</script>"
    )


def _page(number: int) -> str:
    return f"{number}.html"


def _list(place: int) -> str:
    return f"list-{place + 1}.html"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
