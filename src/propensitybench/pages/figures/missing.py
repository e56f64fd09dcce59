"""Missing data: how far tasks without a score could move the propensity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from matplotlib.axes import Axes

from propensitybench.metrics import NamingScores
from propensitybench.pages.figures.layout import Drawing, Key, Panel, single
from propensitybench.pages.figures.marks import mark_style, point, row_axis, share_axis, write_beside
from propensitybench.pages.figures.view import ModelView, View, in_percent, scaled
from propensitybench.pages.style import FAINT, INK, TWO_COLUMNS, widest
from propensitybench.taxonomy import NAMINGS, Naming

ROW: Final = 0.2
BOUNDS: Final = Key("bounds: missing tasks all resisted to all misaligned", marker="", line=6.0, alpha=0.3)
NONE_MISSING: Final = "Every task has a score, so the bounds coincide with the propensity."
TRUNCATED: Final = (
    "Truncated: the output limit cut off a reply before it was usable; run again with a higher --max-tokens."
)


class MissingRow(NamedTuple):
    """A model under a naming."""

    model: ModelView
    naming: Naming
    scores: NamingScores


def missing_drawing(view: View) -> Drawing:
    """Propensity, its interval and its bounds, by model and naming."""
    rows = [
        MissingRow(model, naming, scores)
        for model in view.models
        for naming in NAMINGS
        if (scores := model.scores(naming)) is not None
    ]
    labels = [f"{row.model.label}, {row.naming}" for row in rows]
    intervals = [row.scores.ci95 or row.scores.missing.bounds for row in rows]
    axis_end = max([view.axis_end, *(100 * one.high for one in intervals if one is not None)])

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            _draw_row(axes, place, row)
        row_axis(axes, labels)
        share_axis(axes, "x", axis_end, view.axis_label)

    panel = Panel(
        name="missing",
        title="Missing data",
        caption=f"{view.definition}, tasks without a score censored at the last level at which the agent "
        "was heard, domains weighted equally, with the bounds that tasks begun without a score allow (all "
        "resisted to all misaligned), under harmful (filled) and benign names (open); with a score, "
        f"{view.all_tasks}; lines are 95% confidence intervals for new scenarios, clustered by scenario, "
        "for every value that these tasks allow (Imbens and Manski).",
        height=ROW * len(rows) + 0.1,
        draw=draw,
        left=widest(labels) + 0.12,
        right=widest([missing_counts(row.scores) for row in rows]) + 0.14,
        key=(
            Key("propensity"),
            BOUNDS,
            Key("95% CI", marker="", line=1.0),
        ),
    )
    return replace(single(panel, TWO_COLUMNS), note=_note(view, rows))


def _draw_row(axes: Axes, place: int, row: MissingRow) -> None:
    missing = row.scores.missing
    bounds = scaled(missing.bounds)
    if bounds is not None:
        axes.plot(
            bounds,
            [place, place],
            color=row.model.colour,
            linewidth=BOUNDS.line,
            alpha=BOUNDS.alpha,
            solid_capstyle="butt",
        )
    style = mark_style(row.model.colour, row.naming)
    point(axes, place, in_percent(row.scores.propensity), scaled(row.scores.ci95), style)
    colour = INK if missing_tasks(row.scores) else FAINT
    write_beside(axes, place, missing_counts(row.scores), colour=colour)


def _note(view: View, rows: Sequence[MissingRow]) -> str:
    notes = [] if any(missing_tasks(row.scores) for row in rows) else [NONE_MISSING]
    if any(sum(row.scores.missing.truncated.values()) for row in rows):
        notes.append(TRUNCATED)
    unplayed = {model.label: model.run.scores.tasks.unplayed for model in view.models}
    counts = ", ".join(f"{label} {count}" for label, count in unplayed.items() if count)
    if counts:
        notes.append(f"Tasks not run yet are not included: {counts}.")
    return " ".join(notes)


def missing_tasks(scores: NamingScores) -> int:
    """Number of tasks begun that have no score."""
    return sum(_missing_by_outcome(scores).values())


def missing_counts(scores: NamingScores) -> str:
    """Number of tasks without a score by outcome, in words."""
    count = missing_tasks(scores)
    if not count:
        return "none missing"
    parts = [f"{number} {outcome}" for outcome, number in _missing_by_outcome(scores).items() if number]
    return f"of {scores.n + count}: {', '.join(parts)}"


def _missing_by_outcome(scores: NamingScores) -> dict[str, int]:
    missing = scores.missing
    return {
        "blocked": sum(missing.blocked.values()),
        "truncated": sum(missing.truncated.values()),
        "errored": sum(missing.errored.values()),
        "unfinished": sum(missing.unfinished.values()),
    }
