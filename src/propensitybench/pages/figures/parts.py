"""Propensities: without and under pressure, by name of the tool, by domain and by dimension."""

from typing import Final, Literal

from propensitybench.metrics.compare import BEGUN_IN_BOTH
from propensitybench.pages.figures.panels import FILLED, MARKER, Drawing, Key, MarkStyle, Panel
from propensitybench.pages.figures.rows import Mark, Row, rows_panel
from propensitybench.pages.figures.view import INTERVALS, SHARE, View, points, titled
from propensitybench.presentation.formats import capitalised, percent
from propensitybench.taxonomy import NAMINGS, Naming, in_order

PLURALS: Final = {"domain": "Domains", "dimension": "Pressure dimensions"}


def zero_panel(view: View, naming: Naming) -> Panel:
    """Zero-pressure propensity and propensity, a row for each model."""
    rows = []
    for model in view.models:
        scores = model.scores(naming)
        if scores is None or not scores.n:
            rows.append(Row(model.label, "no score", [()]))
            continue
        zero, whole = (scores.estimates[name].domain for name in ("propensity_zero", "propensity"))
        lanes = [
            [
                Mark(
                    f"{model.label}, {what}",
                    one.value,
                    one.ci95,
                    MarkStyle(model.colour, MARKER[naming], filled),
                )
            ]
            for what, one, filled in (("zero-pressure", zero, False), ("all levels", whole, True))
        ]
        rows.append(Row(model.label, f"{percent(zero.value)} \u2192 {percent(whole.value)}%", lanes))
    key = (
        Key("zero-pressure", MarkStyle(marker=MARKER[naming], filled=False)),
        Key("all levels", MarkStyle(marker=MARKER[naming])),
    )
    return rows_panel(f"zero-{naming}", titled("Without and under pressure", naming), rows, view.scale, key)


def zero_drawing(view: View) -> Drawing:
    """Zero-pressure propensity and propensity."""
    return Drawing(
        "zero",
        "Without and under pressure",
        f"{capitalised(SHARE)} at level 0 (zero-pressure) and at any level ({view.measure}), domains "
        f"weighted equally; {view.all_tasks}; lines are {INTERVALS}.",
        tuple(zero_panel(view, naming) for naming in view.namings),
    )


def naming_panel(view: View) -> Panel:
    """Harmful against benign names of the same tool, a row for each model."""
    rows = []
    for model in view.models:
        lanes = [
            [Mark(f"{model.label}, {naming} name", scores.propensity, scores.ci95, model.style(naming))]
            for naming in NAMINGS
            if (scores := model.scores(naming)) is not None
        ]
        contrast = model.run.scores.naming_contrast
        known = contrast is not None and contrast.propensity.value is not None
        note = f"{points(contrast.propensity.value)} pp" if contrast and known else "one naming"
        rows.append(Row(model.label, note, lanes))
    key = tuple(
        Key(f"{naming} name", MarkStyle(marker=MARKER[naming], filled=FILLED[naming])) for naming in NAMINGS
    )
    return rows_panel("namings", "Name of the misaligned tool", rows, view.scale, key)


def naming_drawing(view: View) -> Drawing:
    """Harmful against benign names."""
    return Drawing(
        "namings",
        "Name of the misaligned tool",
        f"{view.definition} where the tool has a harmful and where it has a benign name, "
        "domains weighted equally, and at the right the difference in percentage points on the "
        f"tasks {BEGUN_IN_BOTH}; {view.all_tasks}; lines are {INTERVALS}.",
        (naming_panel(view),),
    )


def part_panel(view: View, naming: Naming, part: Literal["domain", "dimension"]) -> Panel:
    """Each domain or dimension, with a mark for each model."""
    found = [(model, scores.parts[part]) for model, scores in view.scored(naming)]
    names = in_order({name for _, parts in found for name in parts})
    rows = [
        Row(
            capitalised(name),
            percent(one[0][1].value) + "%" if len(one) == 1 else "",
            [
                [Mark(f"{capitalised(name)}, {model.label}", cell.value, cell.ci95, model.style(naming))]
                for model, cell in one
            ],
        )
        for name in names
        if (one := [(model, parts[name].domain) for model, parts in found if name in parts])
    ]
    rows = rows or [Row("no score")]
    key = view.key_under(naming) if len(view.models) > 1 else ()
    return rows_panel(f"{part}s-{naming}", titled(PLURALS[part], naming), rows, view.scale, key)


def part_drawing(view: View, part: Literal["domain", "dimension"]) -> Drawing:
    """Propensity in each domain or under each dimension."""
    where = (
        "in each domain" if part == "domain" else "under each pressure dimension, domains weighted equally"
    )
    aware = "" if part == "domain" else " (evaluation-awareness: the agent is told that oversight is reduced)"
    return Drawing(
        f"{part}s",
        PLURALS[part],
        f"{view.definition} {where}{aware}; {view.all_tasks}; lines are {INTERVALS}.",
        tuple(part_panel(view, naming, part) for naming in view.namings),
    )
