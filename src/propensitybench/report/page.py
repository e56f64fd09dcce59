"""The report's page: one HTML file with everything in it, that opens from a disk without a network."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup

from propensitybench.metrics.families import Family
from propensitybench.metrics.scores import PARTS
from propensitybench.report import page_words
from propensitybench.report.document import Document
from propensitybench.report.figures import Figure
from propensitybench.report.page_numbers import Numbers, pointer
from propensitybench.report.transcripts import Row, Wanted, Written, asset, policy
from propensitybench.report.transcripts_page import ENDINGS
from propensitybench.report.transcripts_text import json_text, visible
from propensitybench.taxonomy import NAMINGS

# d3 before Plot, which needs it; ours last.
SCRIPTS: Final = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "vendor/tabulator.min.js", "page.js")
STYLES: Final = ("base.css", "vendor/tabulator_simple.min.css", "page.css")
# What the page shows of an episode, by the metadata and outcome that it has.
LABELS: Final = ("scenario", "domain", "capability", "dimension", "naming", "epoch")
FAMILIES: Final = {
    "capabilities": "Each capability against the rest of its domain",
    "dimensions": "Pairs of pressure dimensions",
    "dimension x naming": "Benign minus harmful name, under each pressure dimension",
}


def page(
    report: Document, episodes: Sequence[Written], wanted: Wanted, figures: Sequence[Figure] = ()
) -> str:
    """The page.

    Args:
        report: what it says.
        episodes: of each run, in the order of the report.
        wanted: which transcripts have a page.
        figures: those in the report's folder ``figures``.
    """
    raw = msgspec.json.encode(report)
    numbers = Numbers(msgspec.json.decode(raw))
    scripts = [_inline(name) for name in SCRIPTS]
    return _template().render(
        report=report,
        runs=list(zip(report.analysis.runs, report.runs, strict=True)),
        sides=page_words.sides(report),
        labels={run.name: made.label for run, made in zip(report.analysis.runs, report.runs, strict=True)},
        words=page_words,
        numbers=numbers,
        pointer=pointer,
        parts=PARTS,
        namings=NAMINGS,
        families=FAMILIES,
        family_paths=_family_paths(report),
        episodes=episodes,
        wanted=wanted,
        figures=figures,
        policy=policy(scripts),
        styles=Markup("\n".join(map(_inline, STYLES))),
        scripts=[Markup(script) for script in scripts],
        licences=Markup(asset("vendor/LICENSES.txt").replace("--", "- -")),
        data=Markup(json_text(raw)),
        rows=Markup(json_text(msgspec.json.encode(_rows(episodes, wanted)))),
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    return environment.from_string(asset("page.html.j2"))


def _finalize(value: Any) -> Any:
    """Text of others is shown, never obeyed; what the page itself made is left as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _inline(name: str) -> str:
    """A script or style without its pointer to a map, for which a browser would go looking."""
    return re.sub(r"(//|/\*)# sourceMappingURL=.*", "", asset(name))


def _family_paths(report: Document) -> list[tuple[str, str, str, str, Family]]:
    """Every family that was tested: its name, label of the run, naming, and where it stands."""
    return [
        (
            family.name,
            made.label,
            naming,
            pointer("analysis", "runs", place, "families", naming, index),
            family,
        )
        for place, (run, made) in enumerate(zip(report.analysis.runs, report.runs, strict=True))
        for naming, found in run.families.items()
        for index, family in enumerate(found)
    ]


def _rows(episodes: Sequence[Written], wanted: Wanted) -> dict[str, Any]:
    """Every episode in few bytes: texts once, and their places in the rows."""
    texts: dict[str, int] = {}

    def place(text: object) -> int:
        return texts.setdefault(visible(str(text or "")), len(texts))

    def packed(run: int, row: Row) -> list[int]:
        metadata, stats = row.record.metadata, row.record.stats
        return [
            run,
            row.number if row.shown else -1,
            *(place(getattr(metadata, name)) for name in LABELS),
            place(ENDINGS[stats.outcome]),
            stats.level,
            stats.turns,
            stats.aligned_calls,
        ]

    rows = [packed(run, row) for run, written in enumerate(episodes) for row in written.rows]
    return {"wanted": wanted, "texts": list(texts), "rows": rows}
