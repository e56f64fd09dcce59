"""Colours, sizes and fonts of figures."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# Widths in inches of one and two columns of a typical journal page.
ONE_COLUMN: Final = 3.35
TWO_COLUMNS: Final = 6.9

# Font and marker sizes in points at those widths; 7 is the smallest font that journals accept.
SIZE: Final = 7.0
TITLE_SIZE: Final = 8.0
# The font size in pages, in figures.css.
PAGE_SIZE: Final = 8.0
MARK: Final = 3.4
TICK: Final = 7.0
# Inches for a model's name beside a panel or in its title.
NAME_WIDTH: Final = 1.25

# Okabe and Ito 2008, with its yellow, which is invisible on white, replaced by Tol's wine. Any two differ
# by at least 15 in CIELAB for every type of colour vision.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#882255", "#E69F00", "#56B4E9")
INK: Final = "#222222"
FAINT: Final = "#6E6E6E"
RULE: Final = "#DDDDDD"

FONT: Final = "DejaVu Sans"  # bundled with matplotlib, so figures are the same everywhere
ELLIPSIS: Final = "\u2026"
UNPRINTABLE: Final = "\ufffd"
_LARGE: Final = 200.0
# More characters than fit into any figure.
_MANY: Final = 1000

_STYLE: Final[dict["RcKeyType", Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.labelsize": SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
    "font.size": SIZE,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.solid_capstyle": "butt",
    "lines.markersize": MARK,
    "lines.markeredgewidth": 0.9,
    "savefig.dpi": 300,
    # Keeps text searchable and accessible. The salt makes the ids, and so the files, deterministic.
    "svg.fonttype": "none",
    "svg.hashsalt": "propensitybench",
    "text.color": INK,
    # Dollar signs in model names are not mathematics.
    "text.parse_math": False,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SIZE,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SIZE,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}


@contextmanager
def styled() -> Iterator[None]:
    """A context with our matplotlib settings, independent of the user's."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def clean(text: str) -> str:
    """The text on one line, with replacement characters for what the font cannot show."""
    known = _font(bold=False).get_charmap()
    return "".join(c if c.isprintable() and ord(c) in known else UNPRINTABLE for c in text)


def text_width(text: str, *, size: float = SIZE, bold: bool = False) -> float:
    """Width of a line of text in inches."""
    font = _font(bold=bold)
    # Measured at a large size, since small glyphs are rounded to whole pixels.
    font.set_size(_LARGE, 72)
    font.set_text(text, 0.0)
    return float(font.get_width_height()[0]) / 64 / 72 * size / _LARGE


def widest(texts: Sequence[str]) -> float:
    """Width in inches of the widest of several lines of text; 0 if there are none."""
    return max(map(text_width, texts), default=0.0)


def margin(texts: Sequence[str]) -> float:
    """Inches that several lines take beside axes, at the size of a page too."""
    return widest(texts) * PAGE_SIZE / SIZE + 0.1


def shorten(text: str, width: float) -> str:
    """The text with its middle elided to fit a width in inches."""
    if len(text) <= _MANY and text_width(text) <= width:
        return text

    def elided(kept: int) -> str:
        return text[: kept - kept // 2] + ELLIPSIS + text[len(text) - kept // 2 :]

    longest = range(2, min(len(text), _MANY))
    return elided(max(bisect_right(longest, width, key=lambda kept: text_width(elided(kept))) + 1, 2))


def wrap(text: str, width: float) -> list[str]:
    """The text broken at spaces into lines that fit a width in inches."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


@cache
def _font(*, bold: bool) -> FT2Font:
    return get_font(findfont(FontProperties(family=FONT, weight="bold" if bold else "normal")))
