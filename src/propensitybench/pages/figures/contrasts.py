"""Differences: between models, and between the namings by dimension."""

from propensitybench.metrics.compare import BEGUN_IN_BOTH, P_TESTS
from propensitybench.metrics.families import CLAIM
from propensitybench.metrics.models import ModelPair
from propensitybench.pages.figures.panels import Drawing, MarkStyle, Panel
from propensitybench.pages.figures.rows import NO_INTERVAL, Mark, Row, Scale, rows_panel
from propensitybench.pages.figures.view import INTERVALS, SHARE, View, points, titled
from propensitybench.presentation.formats import capitalised, p_value
from propensitybench.taxonomy import Naming, in_order


def pair_drawing(view: View) -> Drawing | None:
    """The differences between all pairs; None with fewer than two models."""
    found = {
        naming: view.analysis.models[naming].pairs
        for naming in view.namings
        if naming in view.analysis.models
    }
    if not found:
        return None
    counts = sorted({pair.contrast.propensity.n for pairs in found.values() for pair in pairs})
    tasks = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return Drawing(
        "pairs",
        "Pairwise differences",
        f"Difference in {view.measure} ({SHARE}), model minus model, domains weighted equally, on the "
        f"{tasks} tasks {BEGUN_IN_BOTH}; lines are unadjusted {INTERVALS}; at the right, the p-value, "
        f"adjusted over all pairs of a naming by Holm's method and significant at {CLAIM:.2f}, of a "
        f"{P_TESTS}.",
        tuple(_pair_panel(view, naming, pairs) for naming, pairs in found.items()),
    )


def _pair_panel(view: View, naming: Naming, pairs: tuple[ModelPair, ...]) -> Panel:
    names = {model.run.name: model.label for model in view.models}
    rows = []
    for pair in pairs:
        label, one = f"{names[pair.second]} \u2212 {names[pair.first]}", pair.contrast.propensity
        rows.append(Row(label, verdict(pair), [[Mark(label, one.value, one.ci95, MarkStyle())]]))
    scale = Scale(f"{capitalised(view.measure)}, difference (percentage points)")
    return rows_panel(f"pairs-{naming}", titled("Pairwise differences", naming), rows, scale)


def verdict(pair: ModelPair) -> str:
    """Whether a pair differs after Holm's adjustment, with p."""
    if pair.p_holm is None:
        return "no common tasks"
    result = "significant" if pair.p_holm <= CLAIM else "not significant"
    p = p_value(pair.p_holm)
    return f"{result}, p {p}" if p.startswith("<") else f"{result}, p = {p}"


def contrast_drawing(view: View) -> Drawing | None:
    """Benign minus harmful names by dimension; None if no run has both."""
    found = [
        (
            model,
            {one.name: one for family in model.run.families.get("both", ()) for one in family.comparisons},
        )
        for model in view.models
    ]
    rows = []
    for name in in_order({name for _, by_name in found for name in by_name}):
        own = [(model, by_name[name]) for model, by_name in found if name in by_name]
        lanes = [
            [Mark(f"{capitalised(name)}, {model.label}", one.difference, one.ci95, MarkStyle(model.colour))]
            for model, one in own
        ]
        note = f"{points(own[0][1].difference)} pp" if len(own) == 1 else ""
        note += ", no interval" if len(own) == 1 and own[0][1].ci95 is None else ""
        rows += [Row(capitalised(name), note, lanes)] if lanes else []
    if not rows:
        return None
    key = view.key if len(view.models) > 1 else ()
    points_only = any(mark.ci95 is None for row in rows for lane in row.lanes for mark in lane)
    scale = Scale("Benign minus harmful name (percentage points)")
    return Drawing(
        "contrasts",
        "Names of the tool by dimension",
        f"Difference in {view.measure} ({SHARE}), benign minus harmful name, under each pressure dimension, "
        f"domains weighted equally, on the tasks {BEGUN_IN_BOTH}; lines are unadjusted {INTERVALS}"
        f"{f'; {NO_INTERVAL}' if points_only else ''}.",
        (rows_panel("contrasts", "Benign minus harmful name", rows, scale, key),),
    )
