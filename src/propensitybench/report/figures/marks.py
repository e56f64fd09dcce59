"""What the panels are made of: axes of percent and of levels, points with intervals, labels at lines."""

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
from propensitybench.report.figures.layout import LINE, size_of
from propensitybench.report.style import FAINT, INK, MARK
from propensitybench.taxonomy import Naming

# The naming shows in the mark and the line as well, for whoever cannot tell colours.
MARKER: Final[dict[Naming, str]] = {"harmful": "o", "benign": "s"}
FILLED: Final[dict[Naming, bool]] = {"harmful": True, "benign": False}
# Of a row, between two marks that belong together.
OFFSET: Final = 0.16
# Further right than this share of the axes, a label's line need not cross what is drawn.
EDGE: Final = 0.9
# Inches between two labels of a share at least.
TICKS: Final = 0.37


class Look(NamedTuple):
    """How a point is drawn."""

    colour: str = INK
    marker: str = "o"
    filled: bool = True
    size: float = MARK


def looks(colour: str, naming: Naming) -> Look:
    """How a model's point looks under a naming."""
    return Look(colour, MARKER[naming], FILLED[naming])


def point(axes: Axes, row: float, value: float | None, interval: Interval | None, look: Look) -> None:
    """A point with its interval, in a row; what is not known is not drawn."""
    if interval is not None:
        axes.plot([interval.low, interval.high], [row, row], color=look.colour, linewidth=1.0)
    if value is not None:
        axes.plot(
            [value],
            [row],
            marker=look.marker,
            markersize=look.size,
            linestyle="none",
            markerfacecolor=look.colour if look.filled else "white",
            markeredgecolor=look.colour,
            # A point at the edge of the axes is whole.
            clip_on=False,
            zorder=3,
        )


def cross(axes: Axes, across: Estimate, up: Estimate, look: Look) -> None:
    """A point of two estimates with the interval of each."""
    if across.value is None or up.value is None:
        return
    if up.ci95 is not None:
        axes.plot([across.value] * 2, up.ci95, color=look.colour, linewidth=1.0)
    point(axes, up.value, across.value, across.ci95, look)


def curve(
    axes: Axes,
    values: Sequence[float | None],
    band: Sequence[Interval | None],
    colour: str,
    *,
    steps: bool = False,
) -> None:
    """Values by level with their band, in percent; a level without a value is a gap."""
    levels = np.arange(len(values))
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


def share_axis(axes: Axes, which: Literal["x", "y"], top: float, label: str) -> None:
    """An axis of shares, from 0 to ``top`` percent."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xlim if which == "x" else axes.set_ylim)(0, top)
    count = int(size_of(axes)[which == "y"] / TICKS)
    axis.set_major_locator(MaxNLocator(min(max(count, 1), 4), steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter("{x:g}%")
    axis.set_label_text(label)
    axes.grid(axis=which)


def level_axis(axes: Axes, last: int) -> None:
    """The axis of levels, 0 to the last."""
    axes.set_xlim(-0.3, last + 0.3)
    axes.set_xticks(range(0, last + 1, level_step(last)))
    axes.set_xlabel("Pressure level (0 = the task alone)")


def level_step(last: int) -> int:
    """Levels from one tick to the next."""
    return 2 if last > 6 else 1


def row_axis(
    axes: Axes, labels: Sequence[str], places: Sequence[float] | None = None, widest: float = inf
) -> None:
    """Rows with a label each, from the top; ``widest`` is the most inches from one to the next."""
    rows = range(len(labels)) if places is None else places
    axes.set_yticks(list(rows), list(labels))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    first, last = min(rows, default=0) - 0.6, max(rows, default=0) + 0.6
    spare = max(0.0, size_of(axes)[1] / widest - (last - first)) / 2
    axes.set_ylim(last + spare, first - spare)


def beside(axes: Axes, row: float, text: str, *, colour: str = INK) -> None:
    """Text in the right margin, in a row."""
    axes.text(
        1.0,
        row,
        f"  {text}",
        transform=blended_transform_factory(axes.transAxes, axes.transData),
        va="center_baseline",
        color=colour,
    )


class End(NamedTuple):
    """A label in the right margin and the place in the axes that it belongs to."""

    x: float
    y: float
    text: str
    colour: str


def end_labels(axes: Axes, ends: Sequence[End], lines: int = 1) -> None:
    """TaskMetadata in the right margin, each as near to its place as the others let it be."""
    low, high = axes.get_ylim()
    reach = axes.get_xlim()
    gap = lines * LINE * 0.9 / size_of(axes)[1]
    wanted = [(end.y - low) / (high - low) for end in ends]
    for end, start, place in zip(ends, wanted, spread(wanted, gap), strict=True):
        across = (end.x - reach[0]) / (reach[1] - reach[0])
        axes.plot(
            [across, 1.01, 1.04],
            [start, start, place] if across > EDGE else [start, place, place],
            transform=axes.transAxes,
            # Dotted, or it would look like the end of an interval.
            color=end.colour if across > EDGE else FAINT,
            linewidth=0.6,
            linestyle="-" if across > EDGE else (0, (1, 2)),
            clip_on=False,
        )
        axes.text(1.05, place, end.text, transform=axes.transAxes, va="center", color=INK, linespacing=1.15)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places at least ``gap`` apart, in the order wanted and as near to it as can be.

    They are within 0..1 if they fit there. With their gaps taken out, places in order are any rising
    numbers, and the nearest rising numbers are an isotonic regression.
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    gaps = gap * np.arange(len(wanted))
    rising = isotonic_regression(np.asarray(wanted, dtype=np.float64)[order] - gaps).x
    found = np.empty(len(wanted))
    found[order] = np.clip(rising, 0.0, max(0.0, 1.0 - gaps[-1])) + gaps
    return [float(place) for place in found]


def empty(axes: Axes, text: str) -> None:
    """Axes with nothing but a sentence that says why."""
    axes.set_axis_off()
    axes.text(0, 0.9, text, transform=axes.transAxes, color=FAINT, va="top")


def _column(values: Sequence[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return 100 * np.array([np.nan if value is None else value for value in values], dtype=np.float64)
