"""The dangerous capabilities of each run: shrunken estimates by domain."""

from typing import Final

from propensitybench.metrics import NamingScores
from propensitybench.metrics.shrinkage import MIN_CELLS
from propensitybench.pages.figures.panels import Drawing, Key, MarkStyle, Panel
from propensitybench.pages.figures.rows import Mark, Row, Scale, rows_panel
from propensitybench.pages.figures.view import ModelView, View, titled
from propensitybench.pages.style import FAINT, TICK
from propensitybench.presentation.formats import capitalised
from propensitybench.taxonomy import Naming, in_order

OBSERVED: Final = MarkStyle(FAINT, "|", size=TICK)


def capability_drawing(view: View) -> Drawing | None:
    """The forest plots of all runs; None if no scenario has a capability."""
    panels = [
        _panel(view, model, naming, scores)
        for model in view.models
        for naming, scores in model.run.scores.naming.items()
        if scores.n and scores.parts["capability"]
    ]
    if not panels:
        return None
    return Drawing(
        "capabilities",
        "Capabilities",
        f"{view.definition} for each dangerous capability, shrunk towards the mean of its "
        "domain (empirical Bayes), with the observed share as a tick and the number of tasks at the right; "
        f"{view.all_tasks}; lines are 95% confidence intervals of the shrunken share, or of the observed "
        f"share where a domain has fewer than {MIN_CELLS} capabilities and nothing is shrunk.",
        tuple(panels),
    )


def _panel(view: View, model: ModelView, naming: Naming, scores: NamingScores) -> Panel:
    rows = []
    domain_of = model.run.domain_of
    for domain in in_order(set(domain_of.values())):
        names = [name for name in sorted(scores.parts["capability"]) if domain_of[name] == domain]
        rows += [Row(capitalised(domain))] if names else []
        rows += [_row(model, naming, scores, name) for name in names]
    style = model.style(naming)
    key = (Key("shrunken", style, line=1.0), Key("observed", OBSERVED))
    title = titled(model.label, naming)
    scale = Scale(view.scale.label, 1.0)
    return rows_panel(f"capabilities-{model.slug}{naming}", title, rows, scale, key)


def _row(model: ModelView, naming: Naming, scores: NamingScores, name: str) -> Row:
    observed = scores.parts["capability"][name].domain
    shrunken = model.run.shrunken[naming].get(name)
    interval = observed.ci95 if shrunken is None else None
    lane = [Mark(f"{name}, observed", observed.value, interval, OBSERVED)]
    if shrunken is not None:
        shrunk = Mark(f"{name}, shrunken", shrunken.shrunken, shrunken.ci95, model.style(naming))
        lane = [shrunk, *lane]
    return Row(name, f"n = {observed.n}", [lane])
