"""Archetypes: models by resilience and persistence."""

from statistics import median
from typing import Final, NamedTuple

from matplotlib.axes import Axes

from propensitybench.metrics.archetypes import MIN_PROBABILITY, Archetype
from propensitybench.metrics.estimates import Estimate
from propensitybench.pages.figures.curves import End, end_labels
from propensitybench.pages.figures.panels import Drawing, MarkStyle, Panel
from propensitybench.pages.figures.view import ModelView, View, titled
from propensitybench.pages.style import FAINT, margin
from propensitybench.taxonomy import Naming

HEIGHT: Final = 2.3
# Position in the axes, and name, of each quadrant.
QUADRANTS: Final = (
    (0.01, 0.97, "late,\nlittle work"),
    (0.99, 0.97, "late,\nmuch work"),
    (0.01, 0.03, "early,\nlittle work"),
    (0.99, 0.03, "early,\nmuch work"),
)


class Position(NamedTuple):
    """A model with a misaligned task: its resilience, persistence and archetype."""

    model: ModelView
    persistence: Estimate
    resilience: Estimate
    archetype: Archetype

    @property
    def label(self) -> str:
        """Its name and archetype, on two lines."""
        if self.archetype.probability is None:
            return self.model.label
        return f"{self.model.label}\n{self.archetype.kind} ({self.archetype.probability:.0%})"


def archetype_drawing(view: View) -> Drawing | None:
    """Resilience by persistence; None if no model was ever misaligned."""
    positions = {naming: known for naming in view.namings if (known := _positions(view, naming))}
    if not positions:
        return None
    absent = [
        f"{model.label} ({naming} names)"
        for naming in view.namings
        for model, _ in view.scored(naming)
        if model not in [position.model for position in positions.get(naming, ())]
    ]
    return Drawing(
        "archetypes",
        "Resilience and persistence",
        "Resilience (mean level of the misaligned call) by persistence (mean number of calls of the "
        "aligned tool before it) among misaligned tasks, domains weighted equally; dashed lines are the "
        "medians of these models, and in brackets is the share of bootstrap resamples of scenarios in which "
        f"a model falls into its quadrant, below {MIN_PROBABILITY:.0%} of which it is unclassified; "
        f"{view.all_tasks}; "
        "lines are 95% confidence intervals for new scenarios, clustered by scenario"
        + (f"; never misaligned, so not shown: {', '.join(absent)}." if absent else "."),
        tuple(_panel(naming, known) for naming, known in positions.items()),
    )


def _positions(view: View, naming: Naming) -> list[Position]:
    archetypes = {archetype.model: archetype for archetype in view.analysis.archetypes[naming]}
    positions = []
    for model, scores in view.scored(naming):
        persistence, resilience = (scores.estimates[name].domain for name in ("persistence", "resilience"))
        if persistence.value is not None and resilience.value is not None:
            positions.append(Position(model, persistence, resilience, archetypes[model.run.name]))
    return positions


def _panel(naming: Naming, positions: list[Position]) -> Panel:
    def draw(axes: Axes) -> None:
        for one in positions:
            _draw_cross(axes, one, one.model.style(naming))
        _set_limits(axes, positions)
        if len(positions) > 1:
            _draw_quadrants(axes, positions)
        axes.set_xlabel("Persistence (calls of the aligned tool)")
        axes.set_ylabel("Resilience (level of the misaligned call)")
        ends = [
            End(one.persistence.value or 0.0, one.resilience.value or 0.0, one.label, one.model.colour)
            for one in positions
        ]
        end_labels(axes, ends, lines=2)

    return Panel(
        f"archetypes-{naming}",
        titled("Resilience and persistence", naming),
        max(HEIGHT, 0.32 * len(positions)),
        draw,
        left=0.4,
        right=margin([line for one in positions for line in one.label.split("\n")]) + 0.06,
    )


def _draw_cross(axes: Axes, one: Position, style: MarkStyle) -> None:
    x, y = one.persistence.value or 0.0, one.resilience.value or 0.0
    if one.persistence.ci95 is not None:
        axes.plot(one.persistence.ci95, [y] * 2, color=style.colour, linewidth=1.0)
    if one.resilience.ci95 is not None:
        axes.plot([x] * 2, one.resilience.ci95, color=style.colour, linewidth=1.0)
    point = axes.add_line(style.line([x], [y]))
    point.set_gid(f"{one.model.label}: persistence {x:.2f}, resilience {y:.2f}")


def _set_limits(axes: Axes, positions: list[Position]) -> None:
    """Axes from zero, so that quadrants keep their meaning, to above every interval."""
    highs = [
        max(max(e.value or 0.0, e.ci95.high if e.ci95 else 0.0) for e in estimates)
        for estimates in ([p.persistence for p in positions], [p.resilience for p in positions])
    ]
    axes.set_xlim(0, 1.05 * max(highs[0], 1))
    axes.set_ylim(0, 1.15 * max(highs[1], 1))


def _draw_quadrants(axes: Axes, positions: list[Position]) -> None:
    x_cut = median(p.persistence.value or 0.0 for p in positions)
    y_cut = median(p.resilience.value or 0.0 for p in positions)
    axes.axvline(x_cut, color=FAINT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    axes.axhline(y_cut, color=FAINT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    for x, y, text in QUADRANTS:
        axes.text(
            x,
            y,
            text,
            transform=axes.transAxes,
            color=FAINT,
            linespacing=1.1,
            ha="left" if x < 0.5 else "right",
            va="top" if y > 0.5 else "bottom",
        )
