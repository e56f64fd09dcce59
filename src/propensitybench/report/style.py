"""Colours, sizes and type of everything that is drawn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# Widths in inches of one and of two columns of a usual journal page.
ONE_COLUMN: Final = 3.35
TWO_COLUMNS: Final = 6.9

# In points, at those widths: the least that journals take.
SIZE: Final = 7.0
TITLE_SIZE: Final = 8.0
MARK: Final = 3.4
TICK: Final = 7.0

# Okabe and Ito 2008 without its yellow, which white paper swallows, and with Tol's wine as the
# eighth. Any two differ by 15 or more in CIELAB for every kind of colour vision.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#882255", "#E69F00", "#56B4E9")
INK: Final = "#222222"
FAINT: Final = "#6E6E6E"
RULE: Final = "#DDDDDD"
# Light to dark in one hue, so that it keeps its order in grey too.
SHADES: Final = ("#F4F8FB", "#9CC4DF", "#2F86BD", "#08467A")

FONT: Final = "DejaVu Sans"  # comes with matplotlib, so that a figure is the same everywhere
ELLIPSIS: Final = "\u2026"
UNPRINTABLE: Final = "\ufffd"
_LARGE: Final = 200.0

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
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": MARK,
    "lines.markeredgewidth": 0.9,
    "savefig.dpi": 300,
    # Text stays text: it can be searched, read aloud and copied. The salt keeps the bytes the same.
    "svg.fonttype": "none",
    "svg.hashsalt": "propensitybench",
    "text.color": INK,
    # A dollar in a model's name is a dollar.
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
    """A context in which figures look like ours, whatever a user has configured."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def clean(text: str) -> str:
    """Text on one line in which whatever the font cannot show is a replacement mark."""
    known = _font(bold=False).get_charmap()
    return "".join(c if c.isprintable() and ord(c) in known else UNPRINTABLE for c in text)


def text_width(text: str, *, size: float = SIZE, bold: bool = False) -> float:
    """Width of a line of text in inches."""
    font = _font(bold=bold)
    # Measured large, since at their real size letters are rounded to whole dots.
    font.set_size(_LARGE, 72)
    font.set_text(text, 0.0)
    return float(font.get_width_height()[0]) / 64 / 72 * size / _LARGE


def widest(texts: Sequence[str]) -> float:
    """Width of the widest of some lines of text in inches; 0 without any."""
    return max(map(text_width, texts), default=0.0)


def shorten(text: str, width: float) -> str:
    """The text with its middle left out until it is no wider than so many inches."""
    kept, short = len(text), text
    while kept > 2 and text_width(short) > width:
        kept -= 1
        short = text[: kept - kept // 2] + ELLIPSIS + text[len(text) - kept // 2 :]
    return short


def wrap(text: str, width: float) -> list[str]:
    """Lines no wider than so many inches, broken at spaces."""
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
