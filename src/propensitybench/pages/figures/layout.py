"""Layout of a figure in inches: rows of panels with titles and legends, and a note.

Sizes are computed from the measured width of every label, so that nothing overlaps or is cut off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from propensitybench.pages.style import FAINT, INK, MARK, TITLE_SIZE, text_width, wrap

# Inches: a line of text, the margin of a figure, a title, the gap between rows of panels, an axis with its
# label, a sample in a legend.
LINE: Final = 0.145
EDGE: Final = 0.05
TITLE: Final = 0.2
GAP: Final = 0.14
AXIS: Final = 0.37
SAMPLE: Final = 0.2
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Key:
    """An entry of a legend.

    Attributes:
        label: its text.
        marker: matplotlib's code of the marker; empty for none.
        filled: whether the marker is filled or an outline.
        line: width in points of a line through the marker; 0 for none.
        alpha: opacity of the line.
        size: size of the marker in points.
    """

    label: str
    colour: str = INK
    marker: str = "o"
    filled: bool = True
    line: float = 0.0
    alpha: float = 1.0
    size: float = MARK

    @property
    def sample(self) -> float:
        """Inches of the sample before the label."""
        return SAMPLE if self.marker or self.line else 0.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        name: name of its files, if it is a figure of its own.
        title: shown above it.
        caption: one sentence: what it shows, the number of tasks, the meaning of lines.
        height: height of the axes in inches.
        draw: draws into the axes.
        left, right, below: inches for labels around the axes.
        key: its legend, shown below the title.
    """

    name: str
    title: str
    caption: str
    height: float
    draw: Callable[[Axes], None]
    left: float = 0.5
    right: float = 0.1
    below: float = AXIS
    key: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        name: name of its files.
        rows: rows of panels, all of the same length.
        width: inches at its final size.
        key: the legend of colours, at the top.
        note: text at the bottom.
        letters: whether panels are lettered a, b, c.
    """

    name: str
    title: str
    caption: str
    rows: tuple[tuple[Panel, ...], ...]
    width: float
    key: tuple[Key, ...] = ()
    note: str = ""
    letters: bool = False


def single(panel: Panel, width: float, key: tuple[Key, ...] = ()) -> Drawing:
    """A drawing of one panel."""
    return Drawing(panel.name, panel.title, panel.caption, ((panel,),), width, key)


def compose(drawing: Drawing) -> Canvas:
    """Draws a figure."""
    inside = drawing.width - 2 * EDGE
    columns = list(zip(*drawing.rows, strict=True))
    margins = [max(panel.left + panel.right for panel in column) for column in columns]
    spans = [margin + (inside - sum(margins)) / len(columns) for margin in margins]
    heads = [_head(row, spans) for row in drawing.rows]
    key, note = key_rows(drawing.key, inside), wrap(drawing.note, inside)
    height = 2 * EDGE + LINE * (len(key) + len(note)) + GAP * (len(drawing.rows) - 1 + bool(key) + bool(note))
    height += sum(heads) + sum(_tall(row) + _below(row) for row in drawing.rows)
    canvas = Canvas(figsize=(drawing.width, height))
    top = height - EDGE
    if key:
        draw_key(canvas, key, EDGE, top)
        top -= LINE * len(key) + GAP
    letter = iter(LETTERS if drawing.letters else "")
    for row, head in zip(drawing.rows, heads, strict=True):
        tall = _tall(row)
        x = EDGE
        for column, panel in enumerate(row):
            draw_head(canvas, panel, (x, top), spans[column], next(letter, ""))
            place = (x + panel.left, top - head - tall, spans[column] - panel.left - panel.right, tall)
            axes = canvas.add_axes(_shares(canvas, place))
            panel.draw(axes)
            x += spans[column]
        top -= head + tall + _below(row) + GAP
    for number, line in enumerate(note):
        write(canvas, EDGE, top - LINE * (number + 0.8), line, color=FAINT)
    return canvas


def key_rows(key: Sequence[Key], width: float) -> list[list[Key]]:
    """The entries of a legend in rows that fit a width in inches."""
    rows: list[list[Key]] = []
    used = 0.0
    for entry in key:
        if not rows or used + _key_width(entry) > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += _key_width(entry)
    return rows


def draw_key(canvas: Canvas, rows: Sequence[Sequence[Key]], left: float, top: float) -> None:
    """Draws the rows of a legend from its upper left corner."""
    for number, row in enumerate(rows):
        x, y = left, top - LINE * (number + 0.5)
        for entry in row:
            _draw_sample(canvas, entry, x, y)
            write(canvas, x + entry.sample, y, entry.label, va="center_baseline")
            x += _key_width(entry)


def draw_head(canvas: Canvas, panel: Panel, corner: tuple[float, float], width: float, letter: str) -> None:
    """Draws a panel's letter, title and legend from its upper left corner."""
    x, y = corner
    indent = 0.0
    if letter:
        write(canvas, x, y - 0.13, letter, fontsize=TITLE_SIZE, fontweight="bold")
        indent = 0.14
    write(canvas, x + indent, y - 0.13, panel.title, fontsize=TITLE_SIZE)
    draw_key(canvas, key_rows(panel.key, width - indent), x + indent, y - TITLE)


def write(canvas: Canvas, x: float, y: float, text: str, **options: Any) -> None:
    """Writes a line of text at a position in inches, with options of matplotlib's ``text``."""
    wide, tall = canvas.get_size_inches()
    canvas.text(x / wide, y / tall, text, **options)


def size_of(axes: Axes) -> tuple[float, float]:
    """Width and height of axes in inches."""
    canvas = axes.get_figure()
    assert isinstance(canvas, Canvas)
    place, (wide, tall) = axes.get_position(), canvas.get_size_inches()
    return float(place.width * wide), float(place.height * tall)


def _tall(row: Sequence[Panel]) -> float:
    return max(panel.height for panel in row)


def _below(row: Sequence[Panel]) -> float:
    return max(panel.below for panel in row)


def _head(row: Sequence[Panel], spans: Sequence[float]) -> float:
    keys = [len(key_rows(panel.key, span - 0.14)) for panel, span in zip(row, spans, strict=True)]
    return TITLE + LINE * max(keys) + 0.04


def _key_width(entry: Key) -> float:
    return entry.sample + text_width(entry.label) + 0.14


def _draw_sample(canvas: Canvas, entry: Key, x: float, y: float) -> None:
    wide, tall = canvas.get_size_inches()
    reach = 0.07 if entry.line else 0.0
    middle = x + 0.08
    canvas.add_artist(
        Line2D(
            [(middle - reach) / wide, (middle + reach) / wide],
            [y / tall, y / tall],
            color=entry.colour,
            linewidth=entry.line,
            linestyle="-" if entry.line else "none",
            alpha=entry.alpha,
            solid_capstyle="butt",
        )
    )
    canvas.add_artist(
        Line2D(
            [middle / wide],
            [y / tall],
            marker=entry.marker or "none",
            markersize=entry.size,
            linestyle="none",
            markerfacecolor=entry.colour if entry.filled else "white",
            markeredgecolor=entry.colour,
        )
    )


def _shares(canvas: Canvas, place: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    wide, tall = canvas.get_size_inches()
    x, y, width, height = place
    return x / wide, y / tall, width / wide, height / tall
