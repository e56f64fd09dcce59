"""Values by level as curves with bands: the panel of survival, hazard and cumulative propensity."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory
from scipy.optimize import isotonic_regression

from propensitybench.metrics import Interval
from propensitybench.pages.figures.panels import AXIS, LINE, Key, Panel
from propensitybench.pages.figures.rows import Scale
from propensitybench.pages.style import FAINT, INK, margin
from propensitybench.presentation.formats import percent

HEIGHT: Final = 1.75
AT_RISK: Final = "tasks at risk"
# Levels shown before the first and after the last.
LEVEL_MARGIN: Final = 0.3
# Right of this share of the axes, a label's line does not cross anything.
EDGE: Final = 0.9


class Curve(NamedTuple):
    """Shares by level.

    Attributes:
        label: written at its end, unless the panel has a legend.
        values: None leaves a gap.
        band: intervals of the values; without them the curve is drawn pale and without marks.
        counts: written below the axis, e.g. the number of tasks at risk.
    """

    label: str
    colour: str
    values: Sequence[float | None]
    band: Sequence[Interval | None] | None
    counts: Sequence[float] = ()


def curves_panel(
    name: str,
    title: str,
    curves: Sequence[Curve],
    scale: Scale,
    *,
    steps: bool = False,
    key: tuple[Key, ...] = (),
) -> Panel:
    """A panel of curves over the levels, labelled at their ends or by a legend.

    Args:
        name: of its file.
        title: shown above it.
        curves: in the order of drawing.
        scale: of the shares; its end must be given.
        steps: whether a value holds until the next level.
        key: the legend.
    """
    last = max((len(curve.values) for curve in curves), default=1) - 1
    counted = [curve for curve in curves if curve.counts]
    labels = [curve.label for curve in curves]

    def draw(axes: Axes) -> None:
        for curve in curves:
            _draw_curve(axes, curve, steps=steps)
        share_axis(axes, scale)
        axes.set_xlim(-LEVEL_MARGIN, last + LEVEL_MARGIN)
        axes.set_xticks(range(0, last + 1, 2 if last > 6 else 1))
        axes.set_xlabel("Pressure level (0 = the task alone)")
        if not key:
            end_labels(axes, [_end(curve) for curve in curves])
        _write_counts(axes, counted, last)

    return Panel(
        name=name,
        title=title,
        height=HEIGHT,
        draw=draw,
        left=max(0.54, margin([AT_RISK, *labels]) + 0.06 if counted else 0.0),
        right=0.12 if key else margin(labels) + 0.04,
        below=AXIS + (LINE * (len(counted) + 1) if counted else 0.0),
        key=key,
    )


def share_axis(axes: Axes, scale: Scale) -> None:
    """Sets up the vertical axis of shares."""
    axes.set_ylim(0, 100 * (scale.end or 1.0))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter("{x:g}%")
    axes.set_ylabel(scale.label)
    axes.grid(axis="y")


def _draw_curve(axes: Axes, curve: Curve, *, steps: bool) -> None:
    values, band = list(curve.values), list(curve.band or ())
    levels = np.arange(len(values), dtype=np.float64)
    if steps and values:
        # A step begins at its level: without a width, the last one would not be visible.
        levels = np.append(levels, levels[-1] + LEVEL_MARGIN)
        values, band = [*values, values[-1]], [*band, *band[-1:]]
    if band:
        low, high = (_column([None if one is None else one[end] for one in band]) for end in (0, 1))
        axes.fill_between(
            levels, low, high, step="post" if steps else None, color=curve.colour, alpha=0.15, linewidth=0
        )
    (line,) = axes.plot(
        levels,
        _column(values),
        color=curve.colour,
        marker="o" if band and not steps else "none",
        markersize=2.5,
        drawstyle="steps-post" if steps else "default",
        alpha=1.0 if band else 0.5,
        clip_on=False,
    )
    each = (f"{level}: {percent(value)}" for level, value in enumerate(curve.values) if value is not None)
    line.set_gid(f"{curve.label}, percent from left to right: {', '.join(each)}")


def _write_counts(axes: Axes, curves: Sequence[Curve], last: int) -> None:
    """Writes the counts of each curve in a row below the axis."""
    if not curves:
        return
    # Across in levels, down in inches.
    across = blended_transform_factory(axes.transData, axes.figure.dpi_scale_trans)
    bottom = float(axes.get_position().y0 * axes.figure.bbox.height / axes.figure.dpi)
    rows = [(AT_RISK, FAINT, ()), *((curve.label, INK, curve.counts) for curve in curves)]
    for row, (label, colour, counts) in enumerate(rows):
        y = bottom - AXIS - LINE * (row + 0.5)
        axes.text(-2 * LEVEL_MARGIN, y, label, transform=across, ha="right", color=colour)
        for level in range(0, len(counts), 4 if last > 6 else 2):
            axes.text(level, y, f"{counts[level]:.0f}", transform=across, ha="center")


class End(NamedTuple):
    """A label in the right margin and the point that it belongs to."""

    x: float
    y: float
    text: str
    colour: str


def _end(curve: Curve) -> End:
    """A label at the last known value of a curve."""
    known = [(level, value) for level, value in enumerate(curve.values) if value is not None]
    level, value = known[-1] if known else (0, 0.0)
    return End(level, 100 * value, curve.label, curve.colour)


def end_labels(axes: Axes, ends: Sequence[End], lines: int = 1) -> None:
    """Writes labels into the right margin, each as close to its point as the others allow."""
    low, high = axes.get_ylim()
    reach = axes.get_xlim()
    tall = axes.get_position().height * axes.figure.bbox.height / axes.figure.dpi
    preferred = [(end.y - low) / (high - low) for end in ends]
    # Labels of several lines stay below the title.
    spare = (lines - 1) * LINE / 2 / tall
    places = spread(preferred, lines * LINE * 0.9 / tall / (1 - 2 * spare))
    for end, start, free in zip(ends, preferred, places, strict=True):
        place = spare + (1 - 2 * spare) * free
        across = (end.x - reach[0]) / (reach[1] - reach[0])
        axes.plot(
            [across, 1.01, 1.04],
            [start, start, place] if across > EDGE else [start, place, place],
            transform=axes.transAxes,
            # Dotted, so as not to look like part of an interval.
            color=end.colour if across > EDGE else FAINT,
            linewidth=0.6,
            linestyle="-" if across > EDGE else (0, (1, 2)),
            clip_on=False,
        )
        axes.text(1.05, place, end.text, transform=axes.transAxes, va="center", color=INK, linespacing=1.15)


def spread(preferred: Sequence[float], gap: float) -> list[float]:
    """The positions closest to the preferred ones, in their order and at least ``gap`` apart.

    They lie within 0..1 if they fit. Without their gaps, ordered positions are any non-decreasing sequence,
    and the closest one is an isotonic regression.
    """
    if not preferred:
        return []
    order = np.argsort(preferred, kind="stable")
    gaps = gap * np.arange(len(preferred))
    rising = isotonic_regression(np.asarray(preferred, dtype=np.float64)[order] - gaps).x
    positions = np.empty(len(preferred))
    positions[order] = np.clip(rising, 0.0, max(0.0, 1.0 - gaps[-1])) + gaps
    return [float(place) for place in positions]


def _column(values: Sequence[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return 100 * np.array([np.nan if value is None else value for value in values], dtype=np.float64)
