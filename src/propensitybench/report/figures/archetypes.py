"""Kinds of agents: how late, and after how much permitted work, each gives in."""

from statistics import median
from typing import Final, NamedTuple

from matplotlib.axes import Axes

from propensitybench.metrics.archetypes import MIN_PROBABILITY as SURE
from propensitybench.metrics.archetypes import Archetype
from propensitybench.metrics.estimates import Estimate
from propensitybench.report.figures.layout import Drawing, Panel
from propensitybench.report.figures.marks import End, cross, end_labels, looks
from propensitybench.report.figures.view import Model, View, titled
from propensitybench.report.style import FAINT, TWO_COLUMNS, widest
from propensitybench.taxonomy import Naming

TALL: Final = 2.3
# Where in the axes each kind lies.
CORNERS: Final = (
    (0.01, 0.97, "late, after little work"),
    (0.99, 0.97, "late, after much work"),
    (0.01, 0.03, "early, after little work"),
    (0.99, 0.03, "early, after much work"),
)


class Place(NamedTuple):
    """Where a model that gave in lies, and what kind it is."""

    model: Model
    work: Estimate
    level: Estimate
    kind: Archetype

    @property
    def label(self) -> str:
        """Its name and its kind, on two lines."""
        if self.kind.probability is None:
            return self.model.label
        return f"{self.model.label}\n{self.kind.kind} ({self.kind.probability:.0%})"


def archetype_drawing(view: View) -> Drawing | None:
    """Level of giving in by aligned calls before it; None if no model ever gave in."""
    places = {naming: found for naming in view.namings if (found := _places(view, naming))}
    if not places:
        return None
    absent = [
        f"{model.label} ({naming} names)"
        for naming in view.namings
        for model, _ in view.scored(naming)
        if model not in [place.model for place in places.get(naming, ())]
    ]
    return Drawing(
        name="archetypes",
        title="When, and after how much work, a model gives in",
        caption="Mean level at which each model called the prohibited tool by the mean number of calls of "
        "the permitted tool before it, among the tasks that ended so, domains weighted equally; dashed "
        "cuts are the medians of these models, in brackets stands how often a model falls into its "
        f"quadrant when scenarios are drawn again, and below {SURE:.0%} no kind is named; {view.all_tasks}; "
        "lines are 95% intervals for new scenarios, clustered by scenario.",
        rows=tuple((_panel(naming, found),) for naming, found in places.items()),
        width=TWO_COLUMNS,
        note=f"Never gave in, and so without a point: {', '.join(absent)}." if absent else "",
    )


def _places(view: View, naming: Naming) -> list[Place]:
    kinds = {kind.model: kind for kind in view.analysis.archetypes[naming]}
    found = []
    for model, scores in view.scored(naming):
        work, level = (scores.estimates[name].domain for name in ("persistence", "resilience"))
        if work.value is not None and level.value is not None:
            found.append(Place(model, work, level, kinds[model.run.name]))
    return found


def _panel(naming: Naming, places: list[Place]) -> Panel:
    def draw(axes: Axes) -> None:
        for place in places:
            cross(axes, place.work, place.level, looks(place.model.colour, naming))
        _limit(axes, places)
        if len(places) > 1:
            _draw_cuts(axes, places)
        axes.set_xlabel("Calls of the permitted tool before giving in (mean)")
        axes.set_ylabel("Level of giving in (mean)")
        ends = [End(p.work.value or 0.0, p.level.value or 0.0, p.label, p.model.colour) for p in places]
        end_labels(axes, ends, lines=2)

    lines = [line for place in places for line in place.label.split("\n")]
    return Panel(
        name=f"archetypes-{naming}",
        title=titled("Level and work before giving in", naming),
        caption="",
        height=max(TALL, 0.28 * len(places)),
        draw=draw,
        left=0.4,
        right=widest(lines) + 0.3,
    )


def _limit(axes: Axes, places: list[Place]) -> None:
    """From zero, so that early is at the bottom and little at the left, to above every interval."""
    highs = [
        max(max(e.value or 0.0, e.ci95.high if e.ci95 else 0.0) for e in estimates)
        for estimates in ([p.work for p in places], [p.level for p in places])
    ]
    axes.set_xlim(0, 1.05 * max(highs[0], 1))
    axes.set_ylim(0, 1.15 * max(highs[1], 1))


def _draw_cuts(axes: Axes, places: list[Place]) -> None:
    cuts = (median(p.work.value or 0.0 for p in places), median(p.level.value or 0.0 for p in places))
    axes.axvline(cuts[0], color=FAINT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    axes.axhline(cuts[1], color=FAINT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    for x, y, text in CORNERS:
        axes.text(
            x,
            y,
            text,
            transform=axes.transAxes,
            color=FAINT,
            ha="left" if x < 0.5 else "right",
            va="top" if y > 0.5 else "bottom",
        )
