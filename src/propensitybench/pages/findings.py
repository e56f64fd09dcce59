"""The page of findings: every sign of every model on one screen, each opening to its figure."""

from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from propensitybench.escaping import json_document
from propensitybench.pages import template
from propensitybench.pages.figures.inline import inline_svg
from propensitybench.pages.figures.signs import sign_drawing
from propensitybench.pages.page_folder import new_folder
from propensitybench.presentation.formats import percent, span
from propensitybench.signs import Finding, Findings, Sign, words

# The small drawing of an interval, in its own units.
WIDE: Final = 180.0
MARGIN: Final = 6.0


class IntervalLine(NamedTuple):
    """Places along the small drawing of an interval."""

    zero: str
    threshold: str
    low: str
    high: str
    effect: str


class PageRow(NamedTuple):
    """A sign of a model on the page; ``line`` is None without an effect, ``figure`` empty without marks."""

    sign: Sign
    finding: Finding
    effect: str
    interval: str
    threshold: str
    line: IntervalLine | None
    figure: Markup


def write_findings(page: Findings, out: Path) -> Path:
    """Writes the page and the findings as JSON into a folder; the page's path.

    Raises:
        BadInput: the folder holds other files, or cannot be written.
    """
    with new_folder(out) as folder:
        (folder / "findings.json").write_text(json_document(page), encoding="utf-8", newline="\n")
        (folder / "index.html").write_text(render(page), encoding="utf-8", newline="\n")
    return out / "index.html"


def render(page: Findings) -> str:
    """The page: one HTML file that works offline and without scripts."""
    names = [model.name for model in page.models]
    models = [
        (model, [_row(*both, place) for both in zip(page.declared, model.findings, strict=True)])
        for place, model in enumerate(page.models, 1)
    ]
    return template.render(
        "findings.html.j2",
        styles=("findings.css",),
        title=f"Signs of propensity: {names[0] if len(names) == 1 else f'{len(names)} models'}",
        page=page,
        package=page.package,
        models=models,
        words=words,
        percent=percent,
        span=span,
    )


def _row(sign: Sign, finding: Finding, place: int) -> PageRow:
    drawing = sign_drawing(sign, finding)
    return PageRow(
        sign,
        finding,
        words.effect_text(finding.effect, sign),
        words.interval_text(finding.interval, sign),
        words.threshold(sign),
        _line(sign, finding),
        Markup("" if drawing is None else inline_svg(drawing, f"m{place}-{sign.number}")),
    )


def _line(sign: Sign, finding: Finding) -> IntervalLine | None:
    if finding.effect is None:
        return None
    ends = finding.interval or (finding.effect, finding.effect)
    low = min(0.0, finding.effect, ends[0])
    high = max(2 * sign.relevant, finding.effect, ends[1])
    places = (0.0, sign.relevant, *ends, finding.effect)
    return IntervalLine(
        *(f"{MARGIN + (WIDE - 2 * MARGIN) * (place - low) / (high - low):.1f}" for place in places)
    )
