"""The page of an experiment: one HTML file with its figure, which works offline."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from propensitybench.escaping import html, json_document
from propensitybench.experiments.folder import ExperimentFolder
from propensitybench.experiments.results import ExperimentAnalysis, ModelAnalysis
from propensitybench.metrics.display import p_value, percent, points_with_interval, with_interval
from propensitybench.pages.figures.experiment import experiment_drawing
from propensitybench.pages.figures.panels import Drawing
from propensitybench.pages.figures.svg import figure_element, panel_svg
from propensitybench.pages.figures.writing import FORMATS, write_drawings
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.transcripts import asset


def write_experiment_page(opened: ExperimentFolder, analysis: ExperimentAnalysis, out: Path) -> Path:
    """Writes the page, the analysis as JSON and the figure into a folder; the page's path.

    Raises:
        BadInput: the folder holds other files, or cannot be written.
    """
    with new_folder(out) as folder:
        (folder / "analysis.json").write_text(json_document(analysis), encoding="utf-8", newline="\n")
        drawing = experiment_drawing(analysis)
        write_drawings([drawing], folder, FORMATS)
        page = "".join(_page(opened, analysis, drawing))
        (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return out / "index.html"


def _page(opened: ExperimentFolder, analysis: ExperimentAnalysis, drawing: Drawing) -> Iterator[str]:
    registration, design = opened.registration, opened.experiment.design
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    yield "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{asset('base.css')}{asset('figures.css')}{asset('experiment.css')}</style>"
    yield f"<title>{html(analysis.name)}</title></head><body><header><h1>"
    yield f"{html(analysis.question or analysis.name)}</h1></header><main>"
    changed = (
        "" if registration.digest == opened.experiment.digest else " The design has changed since; see below."
    )
    yield (
        f"<p>Design {html(registration.digest)}, registered {html(registration.created)} before the first "
        f"call, with the effects {html(', '.join(registration.comparisons))}.{changed}</p>"
    )
    yield figure_element(drawing.caption, map(panel_svg, drawing.panels))
    for model in analysis.models:
        yield from _model(model)
    yield f"<h2>Design</h2><pre>{html(_json(design))}</pre>"
    if changed:
        yield f"<h2>Design as registered</h2><pre>{html(_json(registration.design))}</pre>"
    yield "</main></body></html>\n"


def _model(model: ModelAnalysis) -> Iterator[str]:
    yield f"<h2>{html(model.model)}</h2>"
    yield from _table(
        ("effect", "difference", "points (95 %)", "bounds", "p", "adjusted p", ""),
        (
            (
                one.name,
                one.what,
                points_with_interval(one.difference),
                "-"
                if one.difference.bounds is None
                else " to ".join(f"{100 * end:.1f}" for end in one.difference.bounds),
                p_value(one.p),
                p_value(one.p_adjusted),
                one.standing,
            )
            for one in model.effects
        ),
    )
    yield from _odds(model)
    kinds = sorted({kind for arm in model.arms for kind in arm.conduct})
    yield from _table(
        ("arm", "misaligned (95 %)", "outcomes", *kinds),
        (
            (
                arm.label,
                with_interval(arm.propensity.value, arm.propensity.ci95),
                ", ".join(f"{count} {name}" for name, count in sorted(arm.tasks.items())),
                *(str(arm.conduct.get(kind, 0)) for kind in kinds),
            )
            for arm in model.arms
        ),
    )
    if model.doses:
        yield "<h3>Placebo-adjusted effect of pressure by level</h3>"
        yield from _table(
            ("level", "difference", "simultaneous 95 % interval"),
            (
                (
                    str(dose.level),
                    percent(dose.difference),
                    "-" if dose.ci95 is None else " to ".join(f"{100 * end:.1f}" for end in dose.ci95),
                )
                for dose in model.doses
            ),
        )
    for note in model.notes:
        yield f"<p>{html(note)}</p>"


def _odds(model: ModelAnalysis) -> Iterator[str]:
    if not model.odds:
        return
    yield from _table(
        ("level", "against", "odds ratio (95 %)", "p", "adjusted p", ""),
        (
            (
                one.name,
                one.reference,
                f"{one.ratio:.2f} ({one.ci95.low:.2f} to {one.ci95.high:.2f})",
                p_value(one.p),
                p_value(one.p_adjusted),
                one.standing,
            )
            for one in model.odds
        ),
    )


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{html(title)}</th>" for title in titles)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{html(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
