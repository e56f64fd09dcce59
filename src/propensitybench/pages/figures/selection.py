"""Pressure and selection: hazards of the hierarchical model with and without scenarios leaving early."""

from collections.abc import Mapping
from typing import Final

from matplotlib.axes import Axes

from propensitybench.metrics.hierarchical import Fit
from propensitybench.metrics.intervals import Interval
from propensitybench.pages.figures.layout import AXIS, Drawing, Key, Panel
from propensitybench.pages.figures.marks import curve, level_axis, share_axis
from propensitybench.pages.figures.view import ModelView, View, titled
from propensitybench.pages.style import INK, ONE_COLUMN, TWO_COLUMNS
from propensitybench.taxonomy import Naming

HEIGHT: Final = 1.9
NOTE: Final = (
    "A fall of the first line alone is selection: scenarios in which the agent gives in easily leave first. "
    "The other two follow the same scenarios from level to level, as far as the model holds."
)


def selection_drawing(
    view: View, model: ModelView, fits: Mapping[Naming, Fit], name: str = "selection"
) -> Drawing | None:
    """The hazards of one run, a panel for each naming; None without a fit.

    Args:
        view: all runs.
        model: the run.
        fits: of this run.
        name: name of the files.
    """
    drawn = [(naming, fit) for naming, fit in fits.items() if fit.levels]
    if not drawn:
        return None
    end = _axis_end([fit for _, fit in drawn])
    counts = "; ".join(f"{naming} names: {fit.scenarios} scenarios" for naming, fit in drawn)
    return Drawing(
        name=name,
        title=f"Pressure and selection, {model.label}",
        caption="Hazard of a call of the prohibited tool at each level (level k follows k pressure messages) "
        "by the hierarchical model: of the scenarios still at risk, of all scenarios had none ended before, "
        f"and of the average scenario; domains and dimensions weighted equally; {counts}; bands are "
        "pointwise 95% credible intervals for new scenarios in new workplaces.",
        rows=(tuple(_panel(view, model, naming, fit, end) for naming, fit in drawn),),
        width=TWO_COLUMNS if len(drawn) > 1 else ONE_COLUMN,
        key=(
            Key("still at risk", model.colour, line=1.2, size=2.5),
            Key("all, had none ended", model.colour, marker="", line=1.2, alpha=0.5),
            Key("average scenario", INK, line=1.2, size=2.5),
        ),
        note=NOTE,
    )


def _panel(view: View, model: ModelView, naming: Naming, fit: Fit, end: float) -> Panel:
    def draw(axes: Axes) -> None:
        at_risk, average = (
            [level.at_risk for level in fit.levels],
            [level.average_scenario for level in fit.levels],
        )
        axes.plot(
            range(len(fit.levels)),
            [100 * level.everyone.value for level in fit.levels],
            color=model.colour,
            alpha=0.5,
        )
        for found, colour in ((at_risk, model.colour), (average, INK)):
            curve(axes, [one.value for one in found], [Interval(*one.ci95) for one in found], colour)
        share_axis(axes, "y", end, "Hazard")
        level_axis(axes, view.last_level)

    return Panel(
        name=f"selection-{naming}",
        title=titled("Hazard", naming),
        caption="",
        height=HEIGHT,
        draw=draw,
        below=AXIS,
    )


def _axis_end(fits: list[Fit]) -> float:
    highest = max(
        max(level.everyone.value, level.at_risk.ci95.high, level.average_scenario.ci95.high)
        for fit in fits
        for level in fit.levels
    )
    return min(100.0, 105 * highest)
