"""The report's page: a self-contained HTML file that works offline."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from propensitybench.escaping import json_text
from propensitybench.metrics.families import Family
from propensitybench.metrics.measures import MEASURES, shown_in
from propensitybench.metrics.scores import PARTS
from propensitybench.pages import page_text
from propensitybench.pages.document import Document
from propensitybench.pages.figures import Figure
from propensitybench.pages.figures.svg import figure_element, inline_svg
from propensitybench.pages.judged import JudgedQuestion, Quote
from propensitybench.pages.page_numbers import Numbers, pointer, unit_of
from propensitybench.pages.template import render
from propensitybench.pages.transcripts import TranscriptChoice, TranscriptRow
from propensitybench.presentation import words
from propensitybench.taxonomy import NAMINGS

SCRIPTS: Final = (
    "dom.js",
    "numbers.js",
    "tables.js",
    "report.js",
)
FAMILIES: Final = {
    "capabilities": "Each capability against the rest of its domain",
    "dimensions": "Pairs of pressure dimensions",
    "dimension x naming": "Benign minus harmful name, by pressure dimension",
}


def render_page(
    report: Document,
    transcripts: Sequence[Sequence[TranscriptRow]],
    choice: TranscriptChoice,
    figures: Sequence[Figure] = (),
    board: str = "",
) -> str:
    """The HTML of the page.

    Args:
        report: the data to show.
        transcripts: of each run, in the order of the report.
        choice: which transcripts have a page.
        figures: as SVG files in the report's folder ``figures``; shown in the page too.
        board: address of the board that the report belongs to; empty if to none.
    """
    raw = msgspec.json.encode(report)
    own = {one.name: one for one in words.own_of([run.scores for run in report.analysis.runs])}
    shown = {one.name: _shown(one) for one in figures if one.name != "overview"}
    return render(
        "page.html.j2",
        styles=("figures.css", "page.css", *(("judged.css",) if report.judged else ())),
        scripts=SCRIPTS,
        report=report,
        runs=list(zip(report.analysis.runs, report.runs, strict=True)),
        sides=page_text.sides(report),
        labels={run.name: made.label for run, made in zip(report.analysis.runs, report.runs, strict=True)},
        text=page_text,
        numbers=Numbers(msgspec.json.decode(raw)),
        pointer=pointer,
        parts=PARTS,
        words=words,
        measures={**MEASURES, **own},
        own=own,
        overview=shown_in("overview"),
        unit_of=unit_of,
        namings=NAMINGS,
        families=FAMILIES,
        family_paths=_family_paths(report),
        transcripts=transcripts,
        linked=partial(_linked, transcripts=transcripts),
        choice=choice,
        figures=figures,
        figure=lambda name: shown.get(name, ""),
        board=board,
        data=Markup(json_text(raw)),
    )


def _shown(figure: Figure) -> Markup:
    return figure_element(figure.caption, [inline_svg(file.read_bytes(), file.stem) for file in figure.files])


def _family_paths(report: Document) -> list[tuple[str, str, str, str, Family]]:
    """Every tested family: its name, the run's label, the naming, its JSON Pointer, and itself."""
    return [
        (
            family.name,
            made.label,
            naming,
            pointer("analysis", "runs", place, "families", naming, index),
            family,
        )
        for place, (run, made) in enumerate(zip(report.analysis.runs, report.runs, strict=True))
        for naming, families in run.families.items()
        for index, family in enumerate(families)
    ]


class LinkedQuote(NamedTuple):
    """A quote with the link to its place in a transcript; empty if that has no page."""

    quote: Quote
    link: str


def _linked(
    question: JudgedQuestion, category: str, transcripts: Sequence[Sequence[TranscriptRow]]
) -> list[LinkedQuote]:
    """The quotes of a category."""
    pages = {row.record.metadata.task: row.file for row in transcripts[question.run]}
    folder = f"transcripts/{question.run + 1}"
    return [
        LinkedQuote(one, f"{folder}/{file}#level-{one.level}-turn-{one.turn}" if file else "")
        for one in question.quotes
        if one.category == category
        for file in [pages.get(one.task)]
    ]
