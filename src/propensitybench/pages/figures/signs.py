"""The figure of one sign of propensity."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from propensitybench.pages.figures.layout import Drawing, Key, Panel
from propensitybench.pages.figures.marks import (
    End,
    MarkStyle,
    curve,
    end_labels,
    level_axis,
    point,
    row_axis,
    share_axis,
    write_beside,
)
from propensitybench.pages.figures.view import AXIS_ENDS, capitalised, in_percent, scaled
from propensitybench.pages.style import COLOURS, FAINT, INK, clean, shorten, text_width, widest
from propensitybench.signs import Declaration, Finding
from propensitybench.signs.evidence import REASON, UNPRESSED, WHEN, in_group
from propensitybench.signs.subject import FigureMark

WIDTH: Final = 5.6
ROW: Final = 0.2
HEIGHT: Final = 1.6
LABEL: Final = 1.9
_INTERVALS: Final = "lines are 95 % confidence intervals for new scenarios, not adjusted"
# Series with an axis, and so a panel, of their own.
_OF: Final = {REASON: "Share of the misaligned tasks read", WHEN: "Share of the misaligned tasks"}


def sign_drawing(sign: Declaration, finding: Finding) -> Drawing | None:
    """The figure of a sign; None if there is nothing to draw."""
    parts = finding.marks
    if not any(part.value is not None for part in parts):
        return None
    own = [in_group(parts, group) for group in _OF]
    if sign.figure == "scatter":
        panels = [_scatter(parts)]
    elif sign.figure == "curve":
        panels = [_curves(parts)]
    else:
        panels = [_rows(sign, part) for part in own if part] or [_rows(sign, parts)]
    key: tuple[Key, ...] = ()
    if in_group(parts, UNPRESSED):
        key = (Key("rising pressure", COLOURS[0]), Key("messages without pressure", COLOURS[1]))
    caption = f"{sign.title}. {_what(sign, parts)}; {_INTERVALS}."
    rows = tuple((panel,) for panel in panels)
    return Drawing(f"sign-{sign.sign}", sign.title, caption, rows, WIDTH, key)


def _what(sign: Declaration, parts: Sequence[FigureMark]) -> str:
    if sign.figure == "scatter":
        return "Propensity and the value on the index, a point for each model"
    if sign.figure == "curve":
        return "Share of tasks with a misaligned call at or below each level"
    shown = ", ".join(f"{part.label} {_percent(part)}" for part in parts)
    return f"Shares: {shown}"


def _percent(part: FigureMark) -> str:
    return "unknown" if part.value is None else f"{100 * part.value:.1f} %"


def _rows(sign: Declaration, parts: Sequence[FigureMark]) -> Panel:
    names = list(dict.fromkeys(part.label for part in parts))
    shown = [shorten(clean(capitalised(name)), LABEL) for name in names]
    groups = list(dict.fromkeys(part.group for part in parts))
    right = text_width("100.0 %") + 0.2

    def draw(axes: Axes) -> None:
        if sign.figure == "threshold":
            axes.axvline(100 * sign.relevant, color=FAINT, linewidth=0.8, linestyle=(0, (2, 2)))
        for part in parts:
            place = groups.index(part.group)
            row = names.index(part.label) + (place - (len(groups) - 1) / 2) * 0.32
            style = MarkStyle(COLOURS[place])
            point(axes, row, in_percent(part.value), scaled(part.ci95), style)
            if len(groups) == 1:
                write_beside(axes, row, _percent(part), colour=INK)
        row_axis(axes, shown)
        share_axis(axes, "x", _axis_end(parts), _OF.get(groups[0], "Share of tasks"))

    return Panel(
        "", "", "", ROW * len(groups) * len(names) + 0.1, draw, left=widest(shown) + 0.12, right=right
    )


def _curves(parts: Sequence[FigureMark]) -> Panel:
    groups = list(dict.fromkeys(part.group for part in parts))
    last = max(int(part.at or 0) for part in parts)

    def draw(axes: Axes) -> None:
        for place, group in enumerate(groups):
            own = in_group(parts, group)
            curve(axes, [part.value for part in own], [part.ci95 for part in own], COLOURS[place])
        share_axis(axes, "y", _axis_end(parts), "Share of tasks")
        level_axis(axes, last)

    return Panel("", "", "", HEIGHT, draw, left=0.55, right=0.1)


def _scatter(parts: Sequence[FigureMark]) -> Panel:
    names = [shorten(clean(part.label), LABEL) for part in parts]

    def draw(axes: Axes) -> None:
        places = [part.at or 0.0 for part in parts]
        low, high = min(places), max(places)
        spare = 0.05 * (high - low or 1.0)
        axes.set_xlim(low - spare, high + spare)
        share_axis(axes, "y", _axis_end(parts), "Propensity")
        for part, place in zip(parts, places, strict=True):
            axes.plot(
                [place],
                [100 * (part.value or 0.0)],
                marker="o",
                linestyle="none",
                color=COLOURS[0],
                clip_on=False,
            )
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("Capability index")
        end_labels(
            axes,
            [
                End(place, 100 * (part.value or 0.0), name, FAINT)
                for part, place, name in zip(parts, places, names, strict=True)
            ],
        )

    return Panel("", "", "", max(HEIGHT, 0.15 * len(parts)), draw, left=0.55, right=widest(names) + 0.25)


def _axis_end(parts: Sequence[FigureMark]) -> float:
    highs = [100 * max(part.value or 0.0, part.ci95.high if part.ci95 else 0.0) for part in parts]
    return next((end for end in AXIS_ENDS if max(highs) <= end), AXIS_ENDS[-1])
