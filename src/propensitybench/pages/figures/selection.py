"""Pressure and selection: hazards of the hierarchical model with and without scenarios leaving early."""

from collections.abc import Mapping
from typing import Final

from propensitybench.metrics.hierarchical import Fit
from propensitybench.metrics.intervals import Interval
from propensitybench.pages.figures.curves import Curve, curves_panel
from propensitybench.pages.figures.panels import Drawing, Key, MarkStyle, Panel
from propensitybench.pages.figures.rows import Scale
from propensitybench.pages.figures.view import ModelView, View, titled
from propensitybench.pages.style import INK
from propensitybench.taxonomy import Naming

Fits = Mapping[str, Mapping[Naming, Fit]]
NOTE: Final = (
    "a fall of the first line alone is selection: scenarios in which the agent gives in easily leave first, "
    "and the other two follow the same scenarios from level to level, as far as the model holds"
)


def selection_drawing(view: View, fits: Fits) -> Drawing | None:
    """The hazards of each run and naming by name of the run; None without a fit."""
    found = [
        (model, naming, fit)
        for model in view.models
        for naming, fit in fits.get(model.run.name, {}).items()
        if fit.levels
    ]
    if not found:
        return None
    counts = "; ".join(
        f"{titled(model.label, naming)}: {fit.scenarios} scenarios" for model, naming, fit in found
    )
    return Drawing(
        "selection",
        "Pressure and selection",
        "Hazard of a call of the misaligned tool at each level (level k follows k pressure messages) "
        "by the hierarchical model: of the scenarios still at risk, of all scenarios had none ended before, "
        f"and of the average scenario; domains and dimensions weighted equally; {counts}; bands are "
        f"pointwise 95% credible intervals for new scenarios in new workplaces; {NOTE}.",
        tuple(_panel(*one) for one in found),
    )


def _panel(model: ModelView, naming: Naming, fit: Fit) -> Panel:
    at_risk = [level.at_risk for level in fit.levels]
    average = [level.average_scenario for level in fit.levels]
    highest = max(
        *(level.everyone.value for level in fit.levels), *(one.ci95.high for one in [*at_risk, *average])
    )
    curves = [
        Curve("all", model.colour, [level.everyone.value for level in fit.levels], None),
        *(
            Curve(label, colour, [one.value for one in found], [Interval(*one.ci95) for one in found])
            for label, found, colour in (("still at risk", at_risk, model.colour), ("average", average, INK))
        ),
    ]
    key = (
        Key("still at risk", MarkStyle(model.colour, size=2.5), line=1.2),
        Key("all, had none ended", MarkStyle(model.colour, ""), line=1.2, alpha=0.5),
        Key("average scenario", MarkStyle(INK, size=2.5), line=1.2),
    )
    scale = Scale("Hazard", min(1.0, 1.05 * highest))
    title = f"Hazard, {titled(model.label, naming)}"
    return curves_panel(f"selection-{model.slug}{naming}", title, curves, scale, key=key)
