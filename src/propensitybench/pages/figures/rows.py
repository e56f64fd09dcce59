"""Points with intervals in rows, each row below its label: the panel of most figures."""

from collections.abc import Sequence
from math import nan
from typing import Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from propensitybench.metrics import Interval
from propensitybench.pages.figures.panels import LINE, Key, MarkStyle, Panel
from propensitybench.pages.style import FAINT, INK, ONE_COLUMN, PAGE_SIZE, RULE, SIZE, text_width, wrap
from propensitybench.presentation.formats import percent, points

# Inches: a lane of marks, between rows, beside the axes: half of "100%".
LANE: Final = 0.105
BETWEEN: Final = 0.06
SIDE: Final = 0.18
# What a line of text may take, so that it fits at the size that figures.css gives it, in as wide a font.
WIDTH: Final = (ONE_COLUMN - 2 * SIDE) * SIZE / PAGE_SIZE
# Inches of height from which the scale is above the axes too.
TALL: Final = 3.5
# Of a mark that is only a point.
NO_INTERVAL: Final = "a point without a line has too few scenarios for an interval"
# Where a scale of shares may end.
ENDS: Final = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


class Mark(NamedTuple):
    """A share, or a difference of shares, with its interval.

    Attributes:
        name: what it is; shown with the numbers where the figure is on a page.
        value: None is not drawn, nor is its interval.
        bounds: what the tasks without a score allow, a broad line.
    """

    name: str
    value: float | None
    ci95: Interval | None
    style: MarkStyle
    bounds: Interval | None = None


class Row(NamedTuple):
    """A label, what stands at its right, and lanes of marks; without lanes it is a heading."""

    label: str
    note: str = ""
    lanes: Sequence[Sequence[Mark]] = ()

    def lines(self) -> list[tuple[str, str]]:
        """The label, broken if it is too long, with the note beside its last line or below."""
        *before, last = wrap(self.label, WIDTH) or [""]
        first = [(line, "") for line in before]
        if text_width(last) + text_width(self.note) + 0.1 <= WIDTH:
            return [*first, (last, self.note)]
        return [*first, (last, ""), *((line, "") for line in wrap(self.note, WIDTH))]


class Scale(NamedTuple):
    """The axis: shares from 0 to ``end``, or, without an end, differences in percentage points around 0.

    Attributes:
        reference: a value to mark with a broken line.
    """

    label: str
    end: float | None = None
    reference: float | None = None


def rows_panel(name: str, title: str, rows: Sequence[Row], scale: Scale, key: tuple[Key, ...] = ()) -> Panel:
    """A panel of rows."""
    height = sum(LINE * len(row.lines()) + LANE * len(row.lanes) + BETWEEN for row in rows)
    tall = height > TALL

    def draw(axes: Axes) -> None:
        axes.set_ylim(height, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        low, high = _reach(rows, scale)
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel(scale.label)
        if scale.end is not None:
            axes.xaxis.set_major_formatter("{x:g}%")
        axes.tick_params(axis="x", top=tall, labeltop=tall)
        spans = _draw_rows(axes, rows, "%" if scale.end is not None else " pp")
        ticks = [float(tick) for tick in axes.get_xticks() if low <= tick <= high]
        _draw_grid(axes, ticks, spans).set(color=RULE, linewidth=0.5)
        if scale.end is None:
            _draw_grid(axes, [0.0], spans).set(color=FAINT, linewidth=0.8)
        if scale.reference is not None:
            broken = _draw_grid(axes, [100 * scale.reference], spans)
            broken.set(color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))

    return Panel(name, title, height, draw, left=SIDE, right=SIDE, key=key, scale_above=tall)


def scale_end(highest: float) -> float:
    """The lowest end of a scale of shares that includes a share."""
    return next((end for end in ENDS if highest <= end), ENDS[-1])


def _reach(rows: Sequence[Row], scale: Scale) -> tuple[float, float]:
    """The ends of the axis in percent."""
    if scale.end is not None:
        return 0.0, 100 * scale.end
    marks = [mark for row in rows for lane in row.lanes for mark in lane if mark.value is not None]
    ends = [100 * end for one in marks for end in (one.value, *(one.ci95 or ())) if end is not None]
    low, high = min([*ends, -1.0]), max([*ends, 1.0])
    return low - 0.03 * (high - low), high + 0.03 * (high - low)


def _draw_rows(axes: Axes, rows: Sequence[Row], unit: str) -> list[tuple[float, float]]:
    """Draws rows from the top; from where to where each has lanes."""
    spans = []
    across = axes.get_yaxis_transform()
    place = 0.0
    for row in rows:
        for label, note in row.lines():
            middle = place + LINE / 2
            weight = "normal" if row.lanes else "bold"
            axes.text(0, middle, label, transform=across, va="center_baseline", fontweight=weight)
            if note:
                axes.text(1, middle, note, transform=across, va="center_baseline", ha="right", color=INK)
            place += LINE
        spans.append((place, place + LANE * len(row.lanes)))
        for lane in row.lanes:
            for mark in lane:
                _draw_mark(axes, place + LANE / 2, mark, unit)
            place += LANE
        place += BETWEEN
    return spans


def _draw_mark(axes: Axes, place: float, mark: Mark, unit: str) -> None:
    if mark.bounds is not None:
        ends = [100 * end for end in mark.bounds]
        axes.plot(ends, [place] * 2, color=mark.style.colour, linewidth=6, alpha=0.3, solid_capstyle="butt")
    if mark.value is None:
        return
    x = [mark.ci95.low, mark.value, mark.ci95.high] if mark.ci95 else [mark.value]
    line = mark.style.line([100 * one for one in x], [place] * len(x), 1.0 if mark.ci95 else 0.0)
    axes.add_line(line).set_gid(_in_words(mark, unit))


def _in_words(mark: Mark, unit: str) -> str:
    written = percent if unit == "%" else points
    interval = "" if mark.ci95 is None else f", 95% CI {written(mark.ci95.low)} to {written(mark.ci95.high)}"
    return f"{mark.name}: {written(mark.value)}{unit}{interval}"


def _draw_grid(axes: Axes, ticks: Sequence[float], spans: Sequence[tuple[float, float]]) -> Line2D:
    """Draws vertical lines where rows have lanes, as one line with gaps: labels stay free of them."""
    x = [at for _, _ in spans for tick in ticks for at in (tick, tick, nan)]
    y = [at for top, bottom in spans for _ in ticks for at in (top, bottom, nan)]
    return axes.add_line(Line2D(x, y, zorder=0, clip_on=False))
