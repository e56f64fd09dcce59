"""A figure as panels: what each shows and how large it is, and how panels are put on a canvas."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from propensitybench.pages.style import INK, MARK, ONE_COLUMN, TITLE_SIZE, TWO_COLUMNS, text_width
from propensitybench.taxonomy import Naming

# Inches: a line of text, the edge of a figure, a title, between rows of panels, an axis with its label.
LINE: Final = 0.145
EDGE: Final = 0.05
TITLE: Final = 0.24
GAP: Final = 0.16
AXIS: Final = 0.37
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
# The naming is encoded in the marker, not in the colour.
MARKER: Final[dict[Naming, str]] = {"harmful": "o", "benign": "s"}
FILLED: Final[dict[Naming, bool]] = {"harmful": True, "benign": False}


@dataclass(frozen=True)
class MarkStyle:
    """Style of a point.

    Attributes:
        marker: matplotlib's code of the marker; empty for none.
        filled: whether it is filled or an outline.
        size: in points.
    """

    colour: str = INK
    marker: str = "o"
    filled: bool = True
    size: float = MARK

    def line(self, x: Sequence[float], y: Sequence[float], width: float = 0.0, alpha: float = 1.0) -> Line2D:
        """Marks at these places; with a width a line through three places, marked in the middle."""
        return Line2D(
            x,
            y,
            color=self.colour,
            alpha=alpha,
            linestyle="-" if width else "none",
            linewidth=width,
            markevery=[1] if width else None,
            marker=self.marker or "none",
            markersize=self.size,
            markerfacecolor=self.colour if self.filled else "white",
            # Points at the edge of the axes are not cut off.
            clip_on=False,
            zorder=3,
        )


@dataclass(frozen=True)
class Key:
    """An entry of a legend: a mark, a line of some width and opacity, or both."""

    label: str
    mark: MarkStyle
    line: float = 0.0
    alpha: float = 1.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes, as wide as a column.

    Attributes:
        name: name of its file.
        title: shown above it.
        height: of the axes in inches.
        draw: draws into the axes.
        left, right, below: inches for what stands around the axes.
        key: its legend, below the title.
        scale_above: whether its scale is also above the axes, which takes room.
    """

    name: str
    title: str
    height: float
    draw: Callable[[Axes], None]
    left: float = 0.54
    right: float = 0.12
    below: float = AXIS
    key: tuple[Key, ...] = ()
    scale_above: bool = False

    @property
    def head(self) -> float:
        """Inches above the axes."""
        legend = LINE * len(self.key_rows()) + 0.06 if self.key else 0.0
        return TITLE + legend + 0.2 * self.scale_above

    def key_rows(self) -> list[tuple[Key, ...]]:
        """The legend in rows of equally wide entries."""
        width = max((text_width(entry.label) for entry in self.key), default=0.0) + 0.3
        count = max(1, int((ONE_COLUMN - 0.1) / width))
        return [self.key[start : start + count] for start in range(0, len(self.key), count)]


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        title: a few words.
        caption: one sentence: what it shows, the number of tasks, the meaning of lines and bands.
        panels: each is a file.
        together: whether the panels are one file instead, lettered and in two columns.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    together: bool = False

    @property
    def files(self) -> dict[str, tuple[Panel, ...]]:
        """The panels of each file, by its name without the suffix."""
        return {self.name: self.panels} if self.together else {one.name: (one,) for one in self.panels}

    @property
    def width(self) -> float:
        """Inches at the final size of each file."""
        return TWO_COLUMNS if self.together else ONE_COLUMN


def compose(panels: Sequence[Panel]) -> Canvas:
    """Draws one panel, or several in two columns with letters."""
    together = len(panels) > 1
    rows = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    heights = [max(one.head + one.height + one.below for one in row) for row in rows]
    width = TWO_COLUMNS if together else ONE_COLUMN
    canvas = Canvas(figsize=(width, sum(heights) + GAP * (len(rows) - 1) + 2 * EDGE))
    letters = iter(LETTERS if together else "")
    top = float(canvas.get_figheight()) - EDGE
    for row, height in zip(rows, heights, strict=True):
        for left, panel in zip((0.0, width - ONE_COLUMN), row, strict=False):
            _place(canvas, panel, (left, top), next(letters, ""))
        top -= height + GAP
    return canvas


def _place(canvas: Canvas, panel: Panel, corner: tuple[float, float], letter: str) -> None:
    """Draws a panel with its title and legend from its upper left corner in inches."""
    wide, tall = canvas.get_size_inches()
    x, top = corner[0] + EDGE, corner[1]
    indent = 0.0
    if letter:
        canvas.text(x / wide, (top - 0.13) / tall, letter, fontsize=TITLE_SIZE, fontweight="bold")
        indent = 0.14
    canvas.text((x + indent) / wide, (top - 0.13) / tall, panel.title, fontsize=TITLE_SIZE)
    for row, entries in enumerate(panel.key_rows()):
        width = (ONE_COLUMN - 0.1) / len(panel.key_rows()[0])
        for column, entry in enumerate(entries):
            at, y = x + column * width, top - TITLE - LINE * (row + 0.3)
            places = [(at + place) / wide for place in ((0.01, 0.08, 0.15) if entry.line else (0.08,))]
            canvas.add_artist(entry.mark.line(places, [y / tall] * len(places), entry.line, entry.alpha))
            canvas.text((at + 0.2) / wide, y / tall, entry.label, va="center_baseline")
    bottom = top - panel.head - panel.height
    across = ONE_COLUMN - panel.left - panel.right
    axes = canvas.add_axes(
        ((corner[0] + panel.left) / wide, bottom / tall, across / wide, panel.height / tall)
    )
    axes.patch.set_visible(False)
    panel.draw(axes)
