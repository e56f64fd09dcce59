"""Elements of panels: axes of percent and of levels, points with intervals, labels at lines."""

from collections.abc import Sequence
from math import inf
from typing import Final, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import blended_transform_factory
from scipy.optimize import isotonic_regression

from propensitybench.metrics import Interval
from propensitybench.metrics.estimates import Estimate
from propensitybench.pages.figures.layout import LINE, size_of
from propensitybench.pages.style import FAINT, INK, MARK
from propensitybench.taxonomy import Naming

# The naming is encoded in the marker, not in the colour.
MARKER: Final[dict[Naming, str]] = {"harmful": "o", "benign": "s"}
FILLED: Final[dict[Naming, bool]] = {"harmful": True, "benign": False}
# Distance of two paired marks from the centre of their row, in rows.
OFFSET: Final = 0.16
# Right of this share of the axes, a label's line does not cross anything.
EDGE: Final = 0.9
# Levels shown before the first and after the last.
LEVEL_MARGIN: Final = 0.3
# Minimum inches between two tick labels of a share.
TICKS: Final = 0.37


class MarkStyle(NamedTuple):
    """Style of a point."""

    colour: str = INK
    marker: str = "o"
    filled: bool = True
    size: float = MARK


def mark_style(colour: str, naming: Naming) -> MarkStyle:
    """Style of a model's point under a naming."""
    return MarkStyle(colour, MARKER[naming], FILLED[naming])


def point(axes: Axes, row: float, value: float | None, interval: Interval | None, style: MarkStyle) -> None:
    """Draws a point with its interval in a row; a value of None is not drawn."""
    if interval is not None:
        axes.plot([interval.low, interval.high], [row, row], color=style.colour, linewidth=1.0)
    if value is not None:
        axes.plot(
            [value],
            [row],
            marker=style.marker,
            markersize=style.size,
            linestyle="none",
            markerfacecolor=style.colour if style.filled else "white",
            markeredgecolor=style.colour,
            # Points at the edge of the axes are not cut off.
            clip_on=False,
            zorder=3,
        )


def cross(axes: Axes, x: Estimate, y: Estimate, style: MarkStyle) -> None:
    """Draws a point of two estimates with the interval of each."""
    if x.value is None or y.value is None:
        return
    if y.ci95 is not None:
        axes.plot([x.value] * 2, y.ci95, color=style.colour, linewidth=1.0)
    point(axes, y.value, x.value, x.ci95, style)


def curve(
    axes: Axes,
    values: Sequence[float | None],
    band: Sequence[Interval | None],
    colour: str,
    *,
    steps: bool = False,
) -> None:
    """Draws values by level with their band, in percent, with a gap where there is no value."""
    levels = np.arange(len(values), dtype=np.float64)
    if steps and values:
        # A step begins at its level: without a width, the last one would not be visible.
        levels = np.append(levels, levels[-1] + LEVEL_MARGIN)
        values, band = [*values, values[-1]], [*band, band[-1]]
    low, high = (_column([None if b is None else b[end] for b in band]) for end in (0, 1))
    axes.fill_between(
        levels, low, high, step="post" if steps else None, color=colour, alpha=0.15, linewidth=0
    )
    axes.plot(
        levels,
        _column(values),
        color=colour,
        marker="none" if steps else "o",
        markersize=2.5,
        drawstyle="steps-post" if steps else "default",
        clip_on=False,
    )


def share_axis(axes: Axes, which: Literal["x", "y"], end: float, label: str) -> None:
    """Sets up an axis of shares from 0 to ``end`` percent."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xlim if which == "x" else axes.set_ylim)(0, end)
    count = int(size_of(axes)[which == "y"] / TICKS)
    axis.set_major_locator(MaxNLocator(min(max(count, 1), 4), steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter("{x:g}%")
    axis.set_label_text(label)
    axes.grid(axis=which)


def level_axis(axes: Axes, last: int) -> None:
    """Sets up the axis of levels, from 0 to the last."""
    axes.set_xlim(-LEVEL_MARGIN, last + LEVEL_MARGIN)
    axes.set_xticks(range(0, last + 1, level_step(last)))
    axes.set_xlabel("Pressure level (0 = the task alone)")


def level_step(last: int) -> int:
    """Number of levels between ticks."""
    return 2 if last > 6 else 1


def row_axis(
    axes: Axes, labels: Sequence[str], places: Sequence[float] | None = None, widest: float = inf
) -> None:
    """Sets up labelled rows from the top, at most ``widest`` inches apart."""
    rows = range(len(labels)) if places is None else places
    axes.set_yticks(list(rows), list(labels))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    first, last = min(rows, default=0) - 0.6, max(rows, default=0) + 0.6
    spare = max(0.0, size_of(axes)[1] / widest - (last - first)) / 2
    axes.set_ylim(last + spare, first - spare)


def write_beside(axes: Axes, row: float, text: str, *, colour: str = INK) -> None:
    """Writes text into the right margin of a row."""
    axes.text(
        1.0,
        row,
        f"  {text}",
        transform=blended_transform_factory(axes.transAxes, axes.transData),
        va="center_baseline",
        color=colour,
    )


class End(NamedTuple):
    """A label in the right margin and the point that it belongs to."""

    x: float
    y: float
    text: str
    colour: str


def end_labels(axes: Axes, ends: Sequence[End], lines: int = 1) -> None:
    """Writes labels into the right margin, each as close to its point as the others allow."""
    low, high = axes.get_ylim()
    reach = axes.get_xlim()
    gap = lines * LINE * 0.9 / size_of(axes)[1]
    preferred = [(end.y - low) / (high - low) for end in ends]
    for end, start, place in zip(ends, preferred, spread(preferred, gap), strict=True):
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


def empty(axes: Axes, text: str) -> None:
    """Empty axes with a sentence that explains why."""
    axes.set_axis_off()
    axes.text(0, 0.9, text, transform=axes.transAxes, color=FAINT, va="top")


def _column(values: Sequence[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return 100 * np.array([np.nan if value is None else value for value in values], dtype=np.float64)
