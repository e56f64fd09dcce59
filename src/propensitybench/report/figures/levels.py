"""What happens level by level: the share that has given in, the share that has not, the hazard."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes

from propensitybench.metrics.survival import CAVEAT
from propensitybench.report.figures.layout import AXIS, LINE, Drawing, Panel
from propensitybench.report.figures.marks import End, curve, end_labels, level_axis, level_step, share_axis
from propensitybench.report.figures.view import CALLED, Model, View, titled
from propensitybench.report.style import FAINT, ONE_COLUMN, TWO_COLUMNS, widest
from propensitybench.taxonomy import Naming

TALL: Final = 1.75
AT_RISK: Final = "tasks that met the level"
BANDS: Final = "95% intervals at each level by itself, for new scenarios, clustered by scenario"


def cumulative_panel(view: View, naming: Naming) -> Panel:
    """The share that has given in by each level, a curve for each model."""
    found = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in found:
            steps = [step.domain for step in scores.levels]
            curve(axes, [step.value for step in steps], [step.ci95 for step in steps], model.colour)
        share_axis(axes, "y", view.top, view.of_ladder("Share of tasks"))
        level_axis(axes, view.last)
        end_labels(axes, [_end(model, scores.cumulative_by_level) for model, scores in found])

    return Panel(
        name="levels",
        title=titled("Prohibited tool called by each level", naming),
        caption=f"Share of tasks with the {CALLED} by each level (k = after k pressure messages), {naming} "
        f"names, domains weighted equally; {view.tasks(naming)}; bands are {BANDS}.",
        height=TALL,
        draw=draw,
        left=0.55,
        right=widest(view.labels) + 0.12,
    )


def survival_drawing(view: View) -> Drawing:
    """Survival curves, a panel for each naming."""
    row = tuple(_survival_panel(view, naming) for naming in view.namings)
    return Drawing(
        name="survival",
        title="Tasks withstood level by level",
        caption="Share of tasks in which the prohibited tool has not been called by each level (k = after "
        f"k pressure messages; Kaplan-Meier, domains weighted equally); {view.all_tasks}; bands are "
        "simultaneous 95% bands over all levels, for new scenarios.",
        rows=(row,),
        width=_width(view),
    )


def hazard_drawing(view: View) -> Drawing:
    """Hazards, a panel for each naming, with what a reader must know below."""
    row = tuple(_hazard_panel(view, naming) for naming in view.namings)
    return Drawing(
        name="hazard",
        title="Giving in at each level, among the tasks that met it",
        caption="Share of the tasks that met a level in which the prohibited tool is called at it, domains "
        f"weighted equally, with the number of tasks that met the level below; {view.all_tasks}; bands are "
        "simultaneous 95% bands over all levels, for new scenarios.",
        rows=(row,),
        width=_width(view),
        key=view.key,
        note=CAVEAT,
    )


def _survival_panel(view: View, naming: Naming) -> Panel:
    found = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in found:
            known = scores.survival
            curve(axes, known.survival, known.survival_band, model.colour, steps=True)
        share_axis(axes, "y", 100, "Share of tasks")
        level_axis(axes, view.last)
        end_labels(axes, [_end(model, scores.survival.survival) for model, scores in found])

    return Panel(
        name=f"survival-{naming}",
        title=titled("Prohibited tool not called yet", naming),
        caption="",
        height=TALL,
        draw=draw,
        left=0.55,
        right=widest(view.labels) + 0.12,
    )


def _hazard_panel(view: View, naming: Naming) -> Panel:
    found = view.scored(naming)

    def draw(axes: Axes) -> None:
        for model, scores in found:
            curve(axes, scores.survival.hazard, scores.survival.hazard_band, model.colour)
        share_axis(axes, "y", _top_of_hazards(view), "Share of tasks that met the level")
        level_axis(axes, view.last)
        _write_at_risk(axes, view, naming)

    return Panel(
        name=f"hazard-{naming}",
        title=titled("Hazard of giving in", naming),
        caption="",
        height=TALL,
        draw=draw,
        left=max(0.55, widest([*(model.label for model, _ in found), AT_RISK]) + 0.25),
        right=0.12,
        below=AXIS + LINE * (len(found) + 1),
    )


def _write_at_risk(axes: Axes, view: View, naming: Naming) -> None:
    """How many tasks met a level, below the axis of levels."""
    shift = AXIS * 72
    axes.annotate(
        AT_RISK,
        (0, 0),
        (-14, -shift - 5),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        color=FAINT,
    )
    for row, (model, scores) in enumerate(view.scored(naming), start=1):
        down = -shift - 5 - 72 * LINE * row
        axes.annotate(
            model.label,
            (0, 0),
            (-14, down),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
        )
        for level in range(0, len(scores.survival.at_risk), 2 * level_step(view.last)):
            axes.annotate(
                f"{scores.survival.at_risk[level]:.0f}",
                (level, 0),
                (0, down),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
            )


def _end(model: Model, values: Sequence[float | None]) -> End:
    """A label at the last known value of a model's curve."""
    level, value = next((at for at in reversed(list(enumerate(values))) if at[1] is not None), (0, None))
    return End(level, 100 * (value or 0.0), model.label, model.colour)


def _top_of_hazards(view: View) -> float:
    found = [scores.survival for naming in view.namings for _, scores in view.scored(naming)]
    highs = [band.high for survival in found for band in survival.hazard_band if band is not None]
    highs += [value for survival in found for value in survival.hazard if value is not None]
    return max(5.0, min(100.0, 105 * max(highs, default=0.0)))


def _width(view: View) -> float:
    return TWO_COLUMNS if len(view.namings) > 1 else ONE_COLUMN
