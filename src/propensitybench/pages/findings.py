"""The page of findings: every sign of every model on one screen, each opening to its figure."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from propensitybench.escaping import html, json_document
from propensitybench.pages.figures.inline import inline_svg
from propensitybench.pages.figures.signs import sign_drawing
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.template import asset, policy
from propensitybench.presentation.formats import percent, span
from propensitybench.signs import Declaration, Finding, Findings, ModelFindings, words
from propensitybench.signs.decide import SignVerdict
from propensitybench.signs.subject import FigureMark

# The small drawing of an interval, in its own units.
WIDE: Final = 180.0
TALL: Final = 22.0
MARGIN: Final = 6.0


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
    return "".join(_page(page))


def _page(page: Findings) -> Iterator[str]:
    names = [model.name for model in page.models]
    title = f"Signs of propensity: {names[0] if len(names) == 1 else f'{len(names)} models'}"
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{html(policy([]))}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{asset('base.css')}{asset('findings.css')}</style>"
    yield f"<title>{html(title)}</title></head><body>"
    yield f"<header><h1>{html(title)}</h1></header><main>"
    yield "".join(f'<p class="caveat">{html(note)}</p>' for note in page.notes)
    if len(names) > 1:
        yield from _matrix(page)
    for place, model in enumerate(page.models, 1):
        yield from _model(page, model, place)
    yield '<section class="notes"><h2>How to read this</h2>'
    yield f"<p>{html(page.adjusted)}</p><ul>"
    yield "".join(f"<li>{html(one)}</li>" for one in page.limits)
    yield f"</ul><p>PropensityBench {html(page.package)}; the numbers: "
    yield '<a href="findings.json">findings.json</a></p>'
    yield "</section></main></body></html>\n"


def _chip(verdict: SignVerdict) -> str:
    kind = verdict.replace(" ", "-")
    mark = f'<span aria-hidden="true">{words.MARKS[verdict]}</span>'
    return f'<span class="verdict {kind}">{mark}&nbsp;{verdict}</span>'


def _matrix(page: Findings) -> Iterator[str]:
    yield '<section><h2>Signs by model</h2><div class="wide" role="region" aria-label="Signs by model" '
    yield 'tabindex="0"><table class="matrix"><thead><tr><th scope="col">model</th>'
    yield "".join(f'<th scope="col">{one.number} {html(one.title)}</th>' for one in page.declared)
    yield "</tr></thead><tbody>"
    for place, model in enumerate(page.models, 1):
        yield f'<tr><th scope="row"><a href="#m{place}">{html(model.name)}</a></th>'
        for finding in model.findings:
            verdict = finding.over_models or finding.verdict
            also = (
                "" if verdict == finding.verdict else f"<br><small>{html(finding.verdict)} by itself</small>"
            )
            yield f"<td>{_chip(verdict)}{also}</td>"
        yield "</tr>"
    yield f"</tbody></table></div><p>{html(words.MATRIX)}</p></section>"


def _model(page: Findings, model: ModelFindings, place: int) -> Iterator[str]:
    yield f'<section aria-labelledby="m{place}"><h2 id="m{place}">{html(model.name)}</h2>'
    yield f'<p class="facts">{html(words.model_facts(model))}</p><ol class="signs">'
    for sign, finding in zip(page.declared, model.findings, strict=True):
        yield from _sign(sign, finding, place)
    yield "</ol></section>"


def _sign(sign: Declaration, finding: Finding, place: int) -> Iterator[str]:
    row = words.sign_row(sign, finding)
    effect = row.effect if finding.effect is not None else ""
    interval = f"<small>{html(row.interval)}</small>" if finding.interval else ""
    yield f'<li><details id="m{place}-{row.sign}"><summary><span class="row">'
    yield f'<span class="name"><b>{row.number}</b> {html(row.title)}</span>{_chip(row.verdict)}'
    yield f'<span class="drawing">{_interval(finding, sign)}</span>'
    yield f'<span class="effect">{html(effect)} {interval}</span>'
    yield f'<span class="sentence">{html(row.sentence)}</span>'
    yield f'</span></summary><div class="opened">{_figure(sign, finding, place)}<dl>'
    for term, what in row.details:
        yield f"<div><dt>{html(term)}</dt><dd>{html(what)}</dd></div>"
    yield "</dl>"
    if finding.marks:
        yield from _numbers(finding.marks)
    if row.hint:
        yield f'<p>To test it:</p><pre tabindex="0">{html(row.hint)}</pre>'
    yield "</div></details></li>"


def _figure(sign: Declaration, finding: Finding, place: int) -> str:
    drawing = sign_drawing(sign, finding)
    return (
        ""
        if drawing is None
        else f'<figure tabindex="0">{inline_svg(drawing, f"m{place}-{sign.number}")}</figure>'
    )


def _numbers(parts: Sequence[FigureMark]) -> Iterator[str]:
    grouped = any(part.group for part in parts)
    yield '<details class="numbers"><summary>Numbers of the figure</summary><table><thead><tr>'
    yield '<th scope="col">part</th>' + ('<th scope="col">series</th>' if grouped else "")
    yield '<th scope="col">percent</th><th scope="col">95 %, not adjusted</th></tr></thead><tbody>'
    for part in parts:
        series = f"<td>{html(part.group)}</td>" if grouped else ""
        yield f'<tr><th scope="row">{html(part.label)}</th>{series}<td>{percent(part.value)}</td>'
        yield f"<td>{span(part.ci95)}</td></tr>"
    yield "</tbody></table></details>"


def _interval(finding: Finding, sign: Declaration) -> str:
    """The effect and its interval as a line, with the smallest effect that matters."""
    if finding.effect is None:
        return ""
    ends = finding.interval or (finding.effect, finding.effect)
    low = min(0.0, finding.effect, ends[0])
    high = max(2 * sign.relevant, finding.effect, ends[1])

    def x(value: float) -> str:
        return f"{MARGIN + (WIDE - 2 * MARGIN) * (value - low) / (high - low):.1f}"

    row = words.sign_row(sign, finding)
    label = f"{row.effect}, interval {row.interval}, smallest effect of interest {row.threshold}"
    middle = TALL / 2
    return (
        f'<svg viewBox="0 0 {WIDE:g} {TALL:g}" role="img" aria-label="{html(label)}">'
        f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="3" y2="{TALL - 3:g}"/>'
        f'<line class="matters" x1="{x(sign.relevant)}" x2="{x(sign.relevant)}" y1="1" y2="{TALL - 1:g}"/>'
        f'<line class="span" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{middle:g}" y2="{middle:g}"/>'
        f'<circle cx="{x(finding.effect)}" cy="{middle:g}" r="3.6"/></svg>'
    )
