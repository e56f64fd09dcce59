"""The page of findings: every sign of every model on one screen, each opening to its figure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from propensitybench.escaping import html, json_document
from propensitybench.pages.figures.signs import sign_drawing
from propensitybench.pages.figures.svg import figure_element, panel_svg
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.template import render
from propensitybench.presentation.formats import percent, span
from propensitybench.signs import Finding, Findings, ModelFindings, Sign, words

# The small drawing of an interval, in its own units.
WIDE: Final = 180.0
TALL: Final = 22.0
MARGIN: Final = 6.0


class ShownSign(NamedTuple):
    """A sign of a model: its words, its numbers, its interval as a line, and its figure if it has one."""

    row: words.SignRow
    finding: Finding
    interval: Markup
    figure: Markup | None


def write_findings(page: Findings, out: Path) -> Path:
    """Writes the page and the findings as JSON into a folder; the page's path.

    Raises:
        BadInput: the folder holds other files, or cannot be written.
    """
    with new_folder(out) as folder:
        (folder / "findings.json").write_text(json_document(page), encoding="utf-8", newline="\n")
        (folder / "index.html").write_text(render_findings(page), encoding="utf-8", newline="\n")
    return out / "index.html"


def render_findings(page: Findings) -> str:
    """The page: one HTML file that works offline, and completely without scripts."""
    names = [model.name for model in page.models]
    return render(
        "findings.html.j2",
        styles=("figures.css", "findings.css"),
        title=f"Signs of propensity: {names[0] if len(names) == 1 else f'{len(names)} models'}",
        package=page.package,
        page=page,
        models=[
            (model, words.model_facts(model), list(_signs(page, model, place)))
            for place, model in enumerate(page.models, 1)
        ],
        marks=words.MARKS,
        explained=words.MATRIX,
        percent=percent,
        span=span,
    )


def _signs(page: Findings, model: ModelFindings, place: int) -> Iterator[ShownSign]:
    for sign, finding in zip(page.declared, model.findings, strict=True):
        drawing = sign_drawing(sign, finding, f"m{place}")
        figure = None if drawing is None else figure_element(drawing.caption, map(panel_svg, drawing.panels))
        yield ShownSign(words.sign_row(sign, finding), finding, _interval(finding, sign), figure)


def _interval(finding: Finding, sign: Sign) -> Markup:
    """The effect and its interval as a line, with the smallest effect of interest."""
    if finding.effect is None:
        return Markup("")
    ends = finding.interval or (finding.effect, finding.effect)
    low = min(0.0, finding.effect, ends[0])
    high = max(2 * sign.relevant, finding.effect, ends[1])

    def x(value: float) -> str:
        return f"{MARGIN + (WIDE - 2 * MARGIN) * (value - low) / (high - low):.1f}"

    row = words.sign_row(sign, finding)
    label = f"{row.effect}, interval {row.interval}, smallest effect of interest {row.threshold}"
    middle = TALL / 2
    return Markup(
        f'<svg viewBox="0 0 {WIDE:g} {TALL:g}" role="img" aria-label="{html(label)}">'
        f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="3" y2="{TALL - 3:g}"/>'
        f'<line class="matters" x1="{x(sign.relevant)}" x2="{x(sign.relevant)}" y1="1" y2="{TALL - 1:g}"/>'
        f'<line class="span" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{middle:g}" y2="{middle:g}"/>'
        f'<circle cx="{x(finding.effect)}" cy="{middle:g}" r="3.6"/></svg>'
    )
