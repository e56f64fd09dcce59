"""What tasks without a score could change."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from matplotlib.axes import Axes

from propensitybench.metrics import NamingScores
from propensitybench.report.figures.layout import Drawing, Key, Panel, alone
from propensitybench.report.figures.marks import beside, looks, point, row_axis, share_axis
from propensitybench.report.figures.view import Model, View, in_percent, scaled
from propensitybench.report.style import FAINT, INK, TWO_COLUMNS, widest
from propensitybench.taxonomy import NAMINGS, Naming

ROW: Final = 0.2
BOUNDS: Final = Key("bounds: all missing resisted to all misaligned", marker="", line=6.0, alpha=0.3)
NONE_MISSING: Final = "No task is without a score: the bounds and the share are one point."


class Row(NamedTuple):
    """A model under a naming."""

    model: Model
    naming: Naming
    scores: NamingScores


def missing_drawing(view: View) -> Drawing:
    """Share of the finished tasks, bounds, and the interval around them, by model and naming."""
    rows = [
        Row(model, naming, scores)
        for model in view.models
        for naming in NAMINGS
        if (scores := model.scores(naming)) is not None
    ]
    labels = [f"{row.model.label}, {row.naming}" for row in rows]
    ends = [row.scores.missing.bounds_interval or row.scores.missing.bounds for row in rows]
    top = max([view.top, *(100 * end.high for end in ends if end is not None)])

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            _draw_row(axes, place, row)
        row_axis(axes, labels)
        share_axis(axes, "x", top, view.called)

    panel = Panel(
        name="missing",
        title="What tasks without a score could change",
        caption="Share of tasks with the prohibited tool called by the last level among the finished "
        "tasks, domains weighted equally, with the bounds that tasks without a score allow (all "
        f"resisted to all misaligned), under harmful (filled) and benign names (open); {view.all_tasks} "
        "with a score; lines are 95% intervals of Imbens and Manski around the bounds, for new scenarios, "
        "clustered by scenario.",
        height=ROW * len(rows) + 0.1,
        draw=draw,
        left=widest(labels) + 0.12,
        right=widest([lost(row.scores) for row in rows]) + 0.14,
        key=(
            Key("finished tasks only"),
            BOUNDS,
            Key("95% interval (Imbens and Manski)", marker="", line=1.0),
        ),
    )
    return replace(alone(panel, TWO_COLUMNS), note=_note(view, rows))


def _draw_row(axes: Axes, place: int, row: Row) -> None:
    found = row.scores.missing
    bounds = scaled(found.bounds)
    if bounds is not None:
        axes.plot(
            bounds,
            [place, place],
            color=row.model.colour,
            linewidth=BOUNDS.line,
            alpha=BOUNDS.alpha,
            solid_capstyle="butt",
        )
    look = looks(row.model.colour, row.naming)
    point(axes, place, in_percent(found.complete_case), scaled(found.bounds_interval), look)
    beside(axes, place, lost(row.scores), colour=INK if missing_tasks(row.scores) else FAINT)


def _note(view: View, rows: Sequence[Row]) -> str:
    notes = [] if any(missing_tasks(row.scores) for row in rows) else [NONE_MISSING]
    left = {model.label: model.run.scores.tasks.unplayed for model in view.models}
    counts = ", ".join(f"{name} {count}" for name, count in left.items() if count)
    if counts:
        notes.append(f"Tasks that were not played yet are not in it: {counts}.")
    return " ".join(notes)


def missing_tasks(scores: NamingScores) -> int:
    """Number of tasks that ended without a score."""
    missing = scores.missing
    return sum(sum(part.values()) for part in (missing.blocked, missing.truncated, missing.errored))


def lost(scores: NamingScores) -> str:
    """In words, how many tasks have no score and why."""
    count = missing_tasks(scores)
    if not count:
        return "none missing"
    causes = {
        "blocked": scores.missing.blocked,
        "truncated": scores.missing.truncated,
        "errored": scores.missing.errored,
    }
    said = ", ".join(f"{sum(by.values())} {cause}" for cause, by in causes.items() if any(by.values()))
    return f"of {scores.n + count}: {said}"
