"""Results by level: cumulative propensity, survival and hazard."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes

from propensitybench.metrics.survival import CAVEAT
from propensitybench.pages.figures.layout import AXIS, LINE, Drawing, Panel
from propensitybench.pages.figures.marks import End, curve, end_labels, level_axis, level_step, share_axis
from propensitybench.pages.figures.view import SHARE, ModelView, View, titled
from propensitybench.pages.style import FAINT, ONE_COLUMN, TWO_COLUMNS, widest
from propensitybench.taxonomy import Naming

HEIGHT: Final = 1.75
AT_RISK: Final = "tasks at risk"


def cumulative_panel(view: View, naming: Naming) -> Panel:
    """Cumulative propensity by level, a curve for each model."""
    scored = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in scored:
            steps = [step.domain for step in scores.levels]
            curve(axes, [step.value for step in steps], [step.ci95 for step in steps], model.colour)
        share_axis(axes, "y", view.axis_end, "Share of tasks")
        level_axis(axes, view.last_level)
        end_labels(axes, [_end(model, scores.cumulative_by_level) for model, scores in scored])

    return Panel(
        name="levels",
        title=titled("Propensity by level", naming),
        caption=f"Cumulative {SHARE} at or below each level (level k follows k pressure messages), {naming} "
        f"names, domains weighted equally; {view.tasks(naming)}; bands are pointwise 95% confidence "
        "intervals for new scenarios, clustered by scenario.",
        height=HEIGHT,
        draw=draw,
        left=0.55,
        right=widest(view.labels) + 0.12,
    )


def survival_drawing(view: View) -> Drawing:
    """Survival curves, a panel for each naming."""
    return Drawing(
        name="survival",
        title="Survival by level",
        caption="Share of tasks without a call of the prohibited tool up to and including each level (level "
        "k follows k pressure messages; Kaplan-Meier, tasks without a score censored, domains weighted "
        f"equally); {view.all_tasks}; bands are simultaneous 95% bands over all levels, for new scenarios.",
        rows=(tuple(_survival_panel(view, naming) for naming in view.namings),),
        width=_width(view),
    )


def hazard_drawing(view: View) -> Drawing:
    """Hazards, a panel for each naming, with a caveat below."""
    return Drawing(
        name="hazard",
        title="Hazard by level",
        caption="Share of the tasks at risk at a level, those that reached it, with a call of the prohibited "
        f"tool at that level, domains weighted equally; {view.all_tasks}; bands are simultaneous 95% bands "
        "over all levels, for new scenarios.",
        rows=(tuple(_hazard_panel(view, naming) for naming in view.namings),),
        width=_width(view),
        key=view.key,
        note=CAVEAT,
    )


def _survival_panel(view: View, naming: Naming) -> Panel:
    scored = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in scored:
            survival = scores.survival
            curve(axes, survival.survival, survival.survival_band, model.colour, steps=True)
        share_axis(axes, "y", 100, "Share of tasks")
        level_axis(axes, view.last_level)
        end_labels(axes, [_end(model, scores.survival.survival) for model, scores in scored])

    return Panel(
        name=f"survival-{naming}",
        title=titled("Survival", naming),
        caption="",
        height=HEIGHT,
        draw=draw,
        left=0.55,
        right=widest(view.labels) + 0.12,
    )


def _hazard_panel(view: View, naming: Naming) -> Panel:
    scored = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in scored:
            curve(axes, scores.survival.hazard, scores.survival.hazard_band, model.colour)
        share_axis(axes, "y", _hazard_axis_end(view), "Share of tasks at risk")
        level_axis(axes, view.last_level)
        _write_at_risk(axes, view, naming)

    return Panel(
        name=f"hazard-{naming}",
        title=titled("Hazard", naming),
        caption="",
        height=HEIGHT,
        draw=draw,
        left=max(0.55, widest([*(model.label for model, _ in scored), AT_RISK]) + 0.25),
        right=0.12,
        below=AXIS + LINE * (len(scored) + 1),
    )


def _write_at_risk(axes: Axes, view: View, naming: Naming) -> None:
    """Writes the number of tasks at risk below the axis of levels."""
    _write_below(axes, 0, AT_RISK, colour=FAINT)
    for row, (model, scores) in enumerate(view.scored(naming), start=1):
        _write_below(axes, row, model.label)
        at_risk = scores.survival.at_risk
        for level in range(0, len(at_risk), 2 * level_step(view.last_level)):
            _write_below(axes, row, f"{at_risk[level]:.0f}", level=level)


def _write_below(
    axes: Axes, row: int, text: str, *, level: int | None = None, colour: str | None = None
) -> None:
    """Writes text in a row below the axis of levels: at a level, or in the left margin."""
    down = -72 * (AXIS + LINE * row) - 5
    axes.annotate(
        text,
        (level or 0, 0),
        (0 if level is not None else -14, down),
        xycoords=("data" if level is not None else "axes fraction", "axes fraction"),
        textcoords="offset points",
        ha="right" if level is None else "center",
        color=colour,
    )


def _end(model: ModelView, values: Sequence[float | None]) -> End:
    """A label at the last known value of a model's curve."""
    level, value = next((at for at in reversed(list(enumerate(values))) if at[1] is not None), (0, None))
    return End(level, 100 * (value or 0.0), model.label, model.colour)


def _hazard_axis_end(view: View) -> float:
    survivals = [scores.survival for naming in view.namings for _, scores in view.scored(naming)]
    highs = [band.high for survival in survivals for band in survival.hazard_band if band is not None]
    highs += [value for survival in survivals for value in survival.hazard if value is not None]
    return max(5.0, min(100.0, 105 * max(highs, default=0.0)))


def _width(view: View) -> float:
    return TWO_COLUMNS if len(view.namings) > 1 else ONE_COLUMN
